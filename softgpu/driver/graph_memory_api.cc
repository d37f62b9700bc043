// Memory that graphs allocate: its figures.
#include "softgpu/driver/address_space.h"
#include "softgpu/driver/graph_exec.h"

namespace softgpu {
namespace {

struct Figures {
  std::atomic<uint64_t> used{0};
  std::atomic<uint64_t> high{0};
};
Figures figures[kMaxDevices];

using ByAddress = std::map<CUdeviceptr, std::shared_ptr<GraphMemory>>;

// What launches have allocated and nobody has freed: it outlives its graph and executable. Guarded
// by Driver::mutex.
ByAddress& Allocated() {
  static auto* allocated = new ByAddress;  // never destroyed, as the driver
  return *allocated;
}

// Calls allocate(memory) and free(address) for the nodes in a runnable order.
template <class Allocate, class Free>
void WalkMemory(const Graph& plan, Allocate allocate, Free free) {
  for (GraphNode* node : SortNodes(plan)) {
    if (auto* alloc = std::get_if<MemoryAllocOperation>(&node->operation)) allocate(alloc->memory);
    if (auto* gone = std::get_if<MemoryFreeOperation>(&node->operation)) free(gone->address);
    for (auto& child : ChildrenOf(node->operation)) WalkMemory(*child, allocate, free);
  }
}

}  // namespace

CUresult ClaimGraphMemory(const std::shared_ptr<GraphExec>& exec) {
  bool claimed = false;
  WalkMemory(
      *exec->plan, [&](auto& memory) { claimed |= !memory->exec.expired(); }, [](CUdeviceptr) {});
  if (claimed) return CUDA_ERROR_NOT_SUPPORTED;
  WalkMemory(
      *exec->plan, [&](auto& memory) { memory->exec = exec; }, [](CUdeviceptr) {});
  return CUDA_SUCCESS;
}

CUresult TakeGraphMemory(const GraphExec& exec) {
  ByAddress& allocated = Allocated();
  bool taken = false;
  WalkMemory(
      *exec.plan, [&](auto& memory) { taken |= allocated.contains(memory->params.dptr); },
      [](CUdeviceptr) {});
  bool frees = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (taken && !frees) return CUDA_ERROR_INVALID_VALUE;
  WalkMemory(
      *exec.plan, [&](auto& memory) { allocated[memory->params.dptr] = memory; },
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

std::shared_ptr<GraphMemory> AllocateForGraph(CUDA_MEM_ALLOC_NODE_PARAMS params) {
  params.accessDescs = nullptr;  // the caller's, and without meaning here
  params.accessDescCount = 0;
  params.dptr = AddressSpace::Get().Allocate(params.poolProps.location.id, params.bytesize, 0,
                                             nullptr, kGraphOwned);
  if (params.dptr == 0) return nullptr;
  Figures& device = figures[params.poolProps.location.id];
  uint64_t used = device.used += params.bytesize;
  uint64_t high = device.high;
  while (high < used && !device.high.compare_exchange_weak(high, used)) {
  }
  auto memory = std::make_shared<GraphMemory>();
  memory->params = params;
  return memory;
}

}  // namespace softgpu

using namespace softgpu;

// Memory goes back when its graph does, so what is reserved is what is used.
CUresult cuDeviceGraphMemTrim(CUdevice device) {
  TRY(Enter());
  return Driver::Get().FindDevice(device) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  TRY(Enter());
  if (Driver::Get().FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Figures& known = figures[device];
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = known.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = known.high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// A high-water mark can only be taken back to where things stand.
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                      void* value) {
  TRY(Enter());
  if (Driver::Get().FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
              attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (!high || value == nullptr || *static_cast<cuuint64_t*>(value) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  figures[device].high = figures[device].used.load();
  return CUDA_SUCCESS;
}
