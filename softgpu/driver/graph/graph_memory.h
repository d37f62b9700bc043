// Memory that graphs allocate, and its figures.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "softgpu/driver/state/driver.h"

namespace softgpu {

// Memory of a graph: one address for all its launches, there as long as a graph or executable
// refers to it. Its bytes therefore outlive a launch, which programs may not rely on.
struct GraphMemory {
  CUDA_MEM_ALLOC_NODE_PARAMS params = {};
  std::weak_ptr<GraphExec> exec LONGWIRE_GUARDED_BY(Driver::mutex);  // that allocates it
  ~GraphMemory();
};
// Memory for a node behind `dependencies` on params.poolProps.location: where it has the size of
// memory that nodes on the way there have allocated and freed, that memory again, as NVIDIA's
// driver does. Null when out of memory.
std::shared_ptr<GraphMemory> AllocateForGraph(const Graph& graph,
                                              const std::vector<GraphNode*>& dependencies,
                                              CUDA_MEM_ALLOC_NODE_PARAMS params)
    LONGWIRE_REQUIRES(Driver::mutex);

// Of a graph that allocates there is one executable at a time: CUDA_ERROR_NOT_SUPPORTED if there
// is another.
CUresult ClaimGraphMemory(const Graph& plan, const std::shared_ptr<GraphExec>& exec)
    LONGWIRE_REQUIRES(Driver::mutex);
// A launch allocates what its nodes say and frees what they say. What is still allocated is freed
// first, or else CUDA_ERROR_INVALID_VALUE and nothing done.
CUresult TakeGraphMemory(const Graph& plan, bool free_first) LONGWIRE_REQUIRES(Driver::mutex);
// The memory is no longer allocated, and can go when the result does; null if it was not.
std::shared_ptr<GraphMemory> FreeGraphMemory(CUdeviceptr address) LONGWIRE_REQUIRES(Driver::mutex);

// Bytes of a device.
struct GraphMemoryFigures {
  std::atomic<uint64_t> used{0};
  std::atomic<uint64_t> high{0};
};
GraphMemoryFigures& GraphMemoryFiguresOf(int device);

}  // namespace softgpu
