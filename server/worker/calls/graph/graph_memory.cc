// Memory that graphs allocate, and nodes of memory operations.
#include <algorithm>
#include <cstring>

#include "base/memory_sizes.h"
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/graph/graph_nodes.h"
#include "server/worker/memory/array_bytes.h"

namespace longwire::worker {
namespace {

constexpr size_t kMaxBytes = base::kMaxMemoryBytes;

// CUstreamBatchMemOpParams[] as it travels. False if it is none.
bool Operations(std::span<const std::byte> bytes, std::vector<CUstreamBatchMemOpParams>* list) {
  constexpr size_t kMaxOperations = 65536;
  size_t count = bytes.size() / sizeof(CUstreamBatchMemOpParams);
  if (bytes.size() % sizeof(CUstreamBatchMemOpParams) != 0 || count > kMaxOperations) return false;
  list->resize(count);
  if (count != 0) std::memcpy(list->data(), bytes.data(), bytes.size());
  return true;
}

struct BatchNode {
  std::vector<CUstreamBatchMemOpParams> operations;
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{};

  CUresult Fill(CallContext& context, std::span<const std::byte> bytes, uint32_t flags) {
    if (!Operations(bytes, &operations)) return CUDA_ERROR_INVALID_VALUE;
    if (context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    params.ctx = context.context()->handle;
    params.count = static_cast<unsigned>(operations.size());
    params.paramArray = operations.data();
    params.flags = flags;
    return CUDA_SUCCESS;
  }
};

}  // namespace

CUresult Do_lwGraphAddAlloc(CallContext& context, const calls::lwGraphAddAlloc& call,
                            calls::lwGraphAddAlloc::Reply* reply) {
  NewNode place;
  LONGWIRE_TRY(place.Resolve(context, call));
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  params.bytesize = call.alloc.bytes;
  CUdevice device{};
  LONGWIRE_TRY(context.ResolveDevice(call.alloc.device, &device));
  params.poolProps.location.id = device;
  size_t count = call.alloc.access_device.size();
  if (count != call.alloc.access_flags.size()) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUmemAccessDesc> access(count);
  for (size_t i = 0; i < count; ++i) {
    LONGWIRE_TRY(context.ResolveDevice(call.alloc.access_device[i], &device));
    access[i].location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access[i].flags = static_cast<CUmemAccess_flags>(call.alloc.access_flags[i]);
  }
  params.accessDescs = access.data();
  params.accessDescCount = count;
  CUgraphNode added = nullptr;
  Graphs& graphs = context.session().graphs();
  graphs.NoteAllocations();
  uint64_t bytes = AllocatedBytes(std::min(params.bytesize, kMaxBytes));
  LONGWIRE_TRY(graphs.ChargeNode(place.graph, call.alloc.device, bytes, context.call().position));
  CUresult result = context.driver().cuGraphAddMemAllocNode(
      &added, place.graph, place.dependencies.data(), place.dependencies.size(), &params);
  if (result != CUDA_SUCCESS) {
    graphs.charges().RemoveNode(place.graph, call.alloc.device, bytes);
    return result;
  }
  reply->node = context.Publish(added);
  reply->address = params.dptr;
  return CUDA_SUCCESS;
}

// What destroyed executables have left may be free now.
CUresult Do_cuDeviceGraphMemTrim(CallContext& context, const calls::cuDeviceGraphMemTrim& call,
                                 calls::cuDeviceGraphMemTrim::Reply*) {
  CUdevice device{};
  LONGWIRE_TRY(context.ResolveDevice(call.device, &device));
  CUresult result = context.driver().cuDeviceGraphMemTrim(device);
  context.session().graphs().charges().Settle();
  return result;
}

CUresult Do_lwGraphAlloc(CallContext& context, const calls::lwGraphAlloc& call,
                         calls::lwGraphAlloc::Reply* reply) {
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  LONGWIRE_TRY(context.Resolve(call.node, &node));
  LONGWIRE_TRY(context.driver().cuGraphMemAllocNodeGetParams(node, &params));
  reply->alloc.device = context.DeviceOrdinal(params.poolProps.location.id);
  reply->alloc.bytes = params.bytesize;
  reply->alloc.address = params.dptr;
  for (size_t i = 0; i < params.accessDescCount && params.accessDescs != nullptr; ++i) {
    reply->alloc.access_device.push_back(context.DeviceOrdinal(params.accessDescs[i].location.id));
    reply->alloc.access_flags.push_back(params.accessDescs[i].flags);
  }
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphMemAttribute(CallContext& context, const calls::lwGraphMemAttribute& call,
                                calls::lwGraphMemAttribute::Reply* reply) {
  CUdevice device{};
  LONGWIRE_TRY(context.ResolveDevice(call.device, &device));
  cuuint64_t value = call.value;
  auto attribute = static_cast<CUgraphMem_attribute>(call.attribute);
  CUresult result = call.set
                        ? context.driver().cuDeviceSetGraphMemAttribute(device, attribute, &value)
                        : context.driver().cuDeviceGetGraphMemAttribute(device, attribute, &value);
  reply->value = value;
  return result;
}

CUresult Do_lwGraphAddBatch(CallContext& context, const calls::lwGraphAddBatch& call,
                            calls::lwGraphAddBatch::Reply* reply) {
  NewNode place;
  BatchNode node;
  LONGWIRE_TRY(place.Resolve(context, call));
  LONGWIRE_TRY(node.Fill(context, call.operations, call.flags));
  CUgraphNode added = nullptr;
  LONGWIRE_TRY(context.driver().cuGraphAddBatchMemOpNode(
      &added, place.graph, place.dependencies.data(), place.dependencies.size(), &node.params));
  reply->node = context.Publish(added);
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphSetBatch(CallContext& context, const calls::lwGraphSetBatch& call,
                            calls::lwGraphSetBatch::Reply*) {
  const DriverTable& driver = context.driver();
  ChangedNode changed;
  BatchNode node;
  LONGWIRE_TRY(changed.Resolve(context, call));
  LONGWIRE_TRY(node.Fill(context, call.operations, call.flags));
  return changed.exec == nullptr ? driver.cuGraphBatchMemOpNodeSetParams(changed.node, &node.params)
                                 : driver.cuGraphExecBatchMemOpNodeSetParams(
                                       changed.exec->handle, changed.node, &node.params);
}

CUresult Do_lwGraphBatch(CallContext& context, const calls::lwGraphBatch& call,
                         calls::lwGraphBatch::Reply* reply) {
  CUgraphNode node = nullptr;
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
  LONGWIRE_TRY(context.Resolve(call.node, &node));
  LONGWIRE_TRY(context.driver().cuGraphBatchMemOpNodeGetParams(node, &params));
  std::string bytes(reinterpret_cast<const char*>(params.paramArray),
                    params.count * sizeof(CUstreamBatchMemOpParams));
  reply->operations = std::as_bytes(std::span(context.Keep(std::move(bytes))));
  reply->flags = params.flags;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
