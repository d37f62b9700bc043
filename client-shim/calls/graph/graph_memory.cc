// Memory that graphs allocate, and nodes of memory operations.
#include "client-shim/graph/graph_memory.h"

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/forwarding.h"
#include "client-shim/memory/placed_memory.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/memory/reach.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// Lists that a program reads at addresses of ours; the newest of them stay.
template <class T>
T* KeepAnswer(std::vector<T> list) {
  constexpr size_t kKeptAnswers = 16384;
  struct Answers {
    base::Mutex mutex{base::ranks::kGraphAnswers};
    std::deque<std::vector<T>> kept LONGWIRE_GUARDED_BY(mutex);
  };
  static NeverDestroyed<Answers> all;
  Answers& answers = *all;
  base::MutexLock lock(answers.mutex);
  answers.kept.push_back(std::move(list));
  if (answers.kept.size() > kKeptAnswers) answers.kept.pop_front();
  return answers.kept.back().data();
}

CUresult CheckOperation(const CUstreamBatchMemOpParams& one, int device) {
  uint64_t bytes = 4;
  switch (one.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      bytes = 8;
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      break;
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t address = one.waitValue.address;  // where writes have theirs
  if (address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(CheckDeviceRange(address, bytes));
  return Reaches(device, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Call>
CUresult Pack(const CUDA_BATCH_MEM_OP_NODE_PARAMS* params, uint32_t* context_number, Call* call) {
  constexpr unsigned kMaxOperations = 255;  // as documented
  if (params == nullptr || params->count > kMaxOperations || params->flags != 0 ||
      params->paramArray == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* context = nullptr;
  CUresult result = ContextOf(params->ctx, &context);
  for (unsigned i = 0; i < params->count && result == CUDA_SUCCESS; ++i) {
    result = CheckOperation(params->paramArray[i], context->device);
  }
  if (result != CUDA_SUCCESS) return result;
  *context_number = context->number.load();
  call->operations = std::as_bytes(std::span(params->paramArray, params->count));
  call->flags = params->flags;
  return CUDA_SUCCESS;
}

CUresult Set(const CUgraphExec* exec, CUgraphNode node,
             const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  calls::lwGraphSetBatch set;
  uint32_t context = 0;
  CUresult result = SetChanged(exec, node, &set);
  if (result == CUDA_SUCCESS) result = Pack(params, &context, &set);
  return result == CUDA_SUCCESS ? Ask(context, set).code : result;
}

CUresult Attribute(CUdevice device, CUgraphMem_attribute attribute, bool set, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  calls::lwGraphMemAttribute ask;
  ask.device = ToWireDevice(device);
  if (ask.device < 0) return CUDA_ERROR_INVALID_DEVICE;
  ask.attribute = attribute;
  ask.set = set;
  ask.value = set ? *static_cast<cuuint64_t*>(value) : 0;
  Where where;
  LONGWIRE_TRY(ForwardTo(0, &where, device));
  auto answer = where.session->CallAndWait(where, ask);
  if (answer.code == CUDA_SUCCESS && !set) *static_cast<cuuint64_t*>(value) = answer.reply.value;
  return answer.code;
}

}  // namespace

CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                const CUgraphNode* dependencies, size_t numDependencies,
                                CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  calls::lwGraphAddAlloc add;
  LONGWIRE_TRY(SetPlace(hGraph, dependencies, numDependencies, &add));
  const auto* params = nodeParams;
  if (params == nullptr || params->bytesize == 0 ||
      params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      params->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
      params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      (params->accessDescCount != 0 && params->accessDescs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  add.alloc.device = ToWireDevice(params->poolProps.location.id);
  add.alloc.bytes = params->bytesize;
  if (add.alloc.device < 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < params->accessDescCount; ++i) {
    const CUmemAccessDesc& access = params->accessDescs[i];
    int32_t device = ToWireDevice(access.location.id);
    if (device < 0) return CUDA_ERROR_INVALID_VALUE;
    add.alloc.access_device.push_back(device);
    add.alloc.access_flags.push_back(access.flags);
  }
  LONGWIRE_TRY(RefuseIfSeveral("memory of a graph"));
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  auto answer = Ask(context->number.load(), add);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (!NotePlaced(answer.reply.address, nodeParams->bytesize)) {
    return context->session->Distrust("allocated in the program's memory");
  }
  nodeParams->dptr = answer.reply.address;
  AddGraphMemory(nodeParams->dptr, nodeParams->bytesize, context);
  FromWire(answer.reply.node, phGraphNode);
  return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  calls::lwGraphAlloc ask;
  ask.node = ToWire(hNode);
  if (ask.node == 0 || params_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto answer = Ask(CurrentNumber(), ask);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  const calls::AllocNode& alloc = answer.reply.alloc;
  *params_out = {};
  params_out->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params_out->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  FromWireDevice(alloc.device, &params_out->poolProps.location.id);
  params_out->bytesize = alloc.bytes;
  params_out->dptr = alloc.address;
  std::vector<CUmemAccessDesc> access(alloc.access_device.size());
  for (size_t i = 0; i < access.size() && i < alloc.access_flags.size(); ++i) {
    access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    FromWireDevice(alloc.access_device[i], &access[i].location.id);
    access[i].flags = static_cast<CUmemAccess_flags>(alloc.access_flags[i]);
  }
  params_out->accessDescCount = access.size();
  if (!access.empty()) params_out->accessDescs = KeepAnswer(std::move(access));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return Attribute(device, attr, false, value);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  return Attribute(device, attr, true, value);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  calls::lwGraphAddBatch add;
  uint32_t context = 0;
  LONGWIRE_TRY(SetPlace(hGraph, dependencies, numDependencies, &add));
  LONGWIRE_TRY(Pack(nodeParams, &context, &add));
  auto answer = Ask(context, add);
  if (answer.code == CUDA_SUCCESS) FromWire(answer.reply.node, phGraphNode);
  return answer.code;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out) {
  calls::lwGraphBatch ask;
  ask.node = ToWire(hNode);
  if (ask.node == 0 || nodeParams_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto answer = Ask(CurrentNumber(), ask);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  std::span<const std::byte> bytes = answer.reply.operations;
  std::vector<CUstreamBatchMemOpParams> list(bytes.size() / sizeof(CUstreamBatchMemOpParams));
  if (!list.empty()) std::memcpy(list.data(), bytes.data(), list.size() * sizeof(list[0]));
  *nodeParams_out = {};
  nodeParams_out->count = static_cast<unsigned>(list.size());
  nodeParams_out->flags = answer.reply.flags;
  nodeParams_out->paramArray = KeepAnswer(std::move(list));
  return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return Set(nullptr, hNode, nodeParams);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  return Set(&hGraphExec, hNode, nodeParams);
}

}  // namespace longwire::shim::hand
