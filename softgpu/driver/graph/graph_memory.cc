#include "softgpu/driver/graph/graph_memory.h"

#include <map>
#include <set>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/memory/address_space.h"

namespace softgpu {
namespace {

GraphMemoryFigures figures[kMaxDevices];

using ByAddress = std::map<CUdeviceptr, std::shared_ptr<GraphMemory>>;

// What launches have allocated and nobody has freed: it outlives its graph and executable.
ByAddress& Allocated() LONGWIRE_REQUIRES(Driver::mutex) {
  static auto* allocated = new ByAddress;  // never destroyed, as the driver
  return *allocated;
}

// Calls allocate(memory) and free(address) for the nodes in a runnable order.
template <class Allocate, class Free>
void WalkMemory(const Graph& plan, Allocate allocate, Free free) LONGWIRE_REQUIRES(Driver::mutex) {
  for (GraphNode* node : SortNodes(plan)) {
    if (auto* alloc = std::get_if<MemoryAllocOperation>(&node->operation)) allocate(alloc->memory);
    if (auto* gone = std::get_if<MemoryFreeOperation>(&node->operation)) free(gone->address);
    for (auto& child : ChildrenOf(node->operation)) WalkMemory(*child, allocate, free);
  }
}

// Of each address, how many more nodes allocate it than free it.
std::map<CUdeviceptr, int> Unfreed(const std::set<GraphNode*>& nodes)
    LONGWIRE_REQUIRES(Driver::mutex) {
  std::map<CUdeviceptr, int> unfreed;
  for (GraphNode* node : nodes) {
    if (auto* alloc = std::get_if<MemoryAllocOperation>(&node->operation)) {
      ++unfreed[alloc->memory->params.dptr];
    }
    if (auto* gone = std::get_if<MemoryFreeOperation>(&node->operation)) --unfreed[gone->address];
  }
  return unfreed;
}

std::shared_ptr<GraphMemory> FreedBefore(const Graph& graph, std::vector<GraphNode*> to_visit,
                                         const CUDA_MEM_ALLOC_NODE_PARAMS& params)
    LONGWIRE_REQUIRES(Driver::mutex) {
  std::set<GraphNode*> before;
  while (!to_visit.empty()) {
    GraphNode* node = to_visit.back();
    to_visit.pop_back();
    if (!before.insert(node).second) continue;
    to_visit.insert(to_visit.end(), node->dependencies.begin(), node->dependencies.end());
  }
  std::set<CUdeviceptr> used_beside;
  for (auto& node : graph.nodes) {
    auto* alloc = std::get_if<MemoryAllocOperation>(&node->operation);
    if (alloc && !before.contains(node.get())) used_beside.insert(alloc->memory->params.dptr);
  }
  std::map<CUdeviceptr, int> unfreed = Unfreed(before);
  for (GraphNode* node : before) {
    auto* alloc = std::get_if<MemoryAllocOperation>(&node->operation);
    if (!alloc || used_beside.contains(alloc->memory->params.dptr)) continue;
    const CUDA_MEM_ALLOC_NODE_PARAMS& had = alloc->memory->params;
    if (unfreed[had.dptr] == 0 && had.bytesize == params.bytesize &&
        had.poolProps.location.id == params.poolProps.location.id) {
      return alloc->memory;
    }
  }
  return nullptr;
}

}  // namespace

GraphMemoryFigures& GraphMemoryFiguresOf(int device) { return figures[device]; }

CUresult ClaimGraphMemory(const Graph& plan, const std::shared_ptr<GraphExec>& exec) {
  bool claimed = false;
  WalkMemory(
      plan,
      [&](auto& memory) LONGWIRE_REQUIRES(Driver::mutex) { claimed |= !memory->exec.expired(); },
      [](CUdeviceptr) {});
  if (claimed) return CUDA_ERROR_NOT_SUPPORTED;
  WalkMemory(
      plan, [&](auto& memory) LONGWIRE_REQUIRES(Driver::mutex) { memory->exec = exec; },
      [](CUdeviceptr) {});
  return CUDA_SUCCESS;
}

CUresult TakeGraphMemory(const Graph& plan, bool free_first) {
  ByAddress& allocated = Allocated();
  bool taken = false;
  WalkMemory(
      plan, [&](auto& memory) { taken |= allocated.contains(memory->params.dptr); },
      [](CUdeviceptr) {});
  if (taken && !free_first) return CUDA_ERROR_INVALID_VALUE;
  WalkMemory(
      plan, [&](auto& memory) { allocated[memory->params.dptr] = memory; },
      [&](CUdeviceptr address) { allocated.erase(address); });
  return CUDA_SUCCESS;
}

std::shared_ptr<GraphMemory> FreeGraphMemory(CUdeviceptr address) {
  auto taken = Allocated().extract(address);
  return taken.empty() ? nullptr : std::move(taken.mapped());
}

GraphMemory::~GraphMemory() {
  AddressSpace::Get().Free(params.dptr, MemoryKind::kDevice);
  figures[params.poolProps.location.id].used -= params.bytesize;
}

std::shared_ptr<GraphMemory> AllocateForGraph(const Graph& graph,
                                              const std::vector<GraphNode*>& dependencies,
                                              CUDA_MEM_ALLOC_NODE_PARAMS params) {
  if (auto memory = FreedBefore(graph, dependencies, params)) return memory;
  params.accessDescs = nullptr;  // the caller's, and without meaning here
  params.accessDescCount = 0;
  params.dptr = AddressSpace::Get().Allocate(params.poolProps.location.id, params.bytesize, 0,
                                             nullptr, kGraphOwned);
  if (params.dptr == 0) return nullptr;
  GraphMemoryFigures& device = figures[params.poolProps.location.id];
  uint64_t used = device.used += params.bytesize;
  uint64_t high = device.high;
  while (high < used && !device.high.compare_exchange_weak(high, used)) {
  }
  auto memory = std::make_shared<GraphMemory>();
  memory->params = params;
  return memory;
}

}  // namespace softgpu
