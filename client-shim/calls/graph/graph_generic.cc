// The calls that take a node of any kind: each kind has its own.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/graph/graph_bodies.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

CUDA_KERNEL_NODE_PARAMS Kernel(const CUDA_KERNEL_NODE_PARAMS_v3& p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    p.kern,      p.ctx};
}

CUDA_MEMSET_NODE_PARAMS Memset(const CUDA_MEMSET_NODE_PARAMS_v2& p) {
  return {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
}

CUDA_BATCH_MEM_OP_NODE_PARAMS Batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2& p) {
  return {p.ctx, p.count, p.paramArray, p.flags};
}

CUresult AddAlloc(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                  CUDA_MEM_ALLOC_NODE_PARAMS_v2* p) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{p->poolProps, p->accessDescs, p->accessDescCount, p->bytesize,
                                    0};
  CUresult result = hand::cuGraphAddMemAllocNode(node, graph, after, count, &params);
  if (result == CUDA_SUCCESS) p->dptr = params.dptr;
  return result;
}

// The child graph is copied, or becomes the node's own: then its nodes are the executable's, too.
CUresult AddChild(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                  const CUDA_CHILD_GRAPH_NODE_PARAMS& p) {
  if (p.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    return forward::cuGraphAddChildGraphNode(node, graph, after, count, p.graph);
  }
  calls::lwGraphMoveChild move;
  LONGWIRE_TRY(SetPlace(graph, after, count, &move));
  move.child = ToWire(p.graph);
  if (move.child == 0 || move.child == move.graph) return CUDA_ERROR_INVALID_VALUE;
  if (IsBody(p.graph)) return CUDA_ERROR_NOT_SUPPORTED;  // a node has it already
  auto answer = Ask(CurrentNumber(), move);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  FromWire(answer.reply.node, node);
  KeepBodies(graph, *node, {p.graph});
  return CUDA_SUCCESS;
}

// The context that a memset names, else the current one.
CUcontext ContextOrCurrent(CUcontext context) {
  Context* current = nullptr;
  if (context != nullptr || RequireContext(&current) != CUDA_SUCCESS) return context;
  return current->handle;
}

CUresult Add(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
             CUgraphNodeParams* p) {
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS params = Kernel(p->kernel);
      return hand::cuGraphAddKernelNode_v2(node, graph, after, count, &params);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return hand::cuGraphAddMemcpyNode(node, graph, after, count, &p->memcpy.copyParams,
                                        p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS params = Memset(p->memset);
      return hand::cuGraphAddMemsetNode(node, graph, after, count, &params,
                                        ContextOrCurrent(p->memset.ctx));
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS params{p->host.fn, p->host.userData};
      return hand::cuGraphAddHostNode(node, graph, after, count, &params);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return AddChild(node, graph, after, count, p->graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return forward::cuGraphAddEmptyNode(node, graph, after, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return hand::cuGraphAddEventWaitNode(node, graph, after, count, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return hand::cuGraphAddEventRecordNode(node, graph, after, count, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return AddAlloc(node, graph, after, count, &p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return forward::cuGraphAddMemFreeNode(node, graph, after, count, p->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS params = Batch(p->memOp);
      return hand::cuGraphAddBatchMemOpNode(node, graph, after, count, &params);
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return AddConditionalNode(node, graph, after, count, &p->conditional);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool IsPlain(const CUgraphEdgeData& edge) {
  static const CUgraphEdgeData kPlain{};
  return std::memcmp(&edge, &kPlain, sizeof edge) == 0;
}

// Nodes of these kinds have no parameters that could be changed.
bool IsFixed(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_EMPTY || type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
         type == CU_GRAPH_NODE_TYPE_MEM_FREE || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

CUresult Set(CUgraphNode node, const CUgraphNodeParams* p) {
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS params = Kernel(p->kernel);
      return hand::cuGraphKernelNodeSetParams_v2(node, &params);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return hand::cuGraphMemcpyNodeSetParams(node, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS params = Memset(p->memset);
      return hand::cuGraphMemsetNodeSetParams(node, &params);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS params{p->host.fn, p->host.userData};
      return hand::cuGraphHostNodeSetParams(node, &params);
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return hand::cuGraphEventWaitNodeSetEvent(node, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return hand::cuGraphEventRecordNodeSetEvent(node, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS params = Batch(p->memOp);
      return hand::cuGraphBatchMemOpNodeSetParams(node, &params);
    }
    default:
      return IsFixed(p->type) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult SetInExec(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams* p) {
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS params = Kernel(p->kernel);
      return hand::cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return hand::cuGraphExecMemcpyNodeSetParams(exec, node, &p->memcpy.copyParams,
                                                  p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS params = Memset(p->memset);
      return hand::cuGraphExecMemsetNodeSetParams(exec, node, &params,
                                                  ContextOrCurrent(p->memset.ctx));
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      CUDA_HOST_NODE_PARAMS params{p->host.fn, p->host.userData};
      return hand::cuGraphExecHostNodeSetParams(exec, node, &params);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return hand::cuGraphExecChildGraphNodeSetParams(exec, node, p->graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return hand::cuGraphExecEventWaitNodeSetEvent(exec, node, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return hand::cuGraphExecEventRecordNodeSetEvent(exec, node, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      CUDA_BATCH_MEM_OP_NODE_PARAMS params = Batch(p->memOp);
      return hand::cuGraphExecBatchMemOpNodeSetParams(exec, node, &params);
    }
    default:
      return IsFixed(p->type) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}

// Edges that say more than "after" are drawn once the node is there.
CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr || !IsCount(numDependencies)) return CUDA_ERROR_INVALID_VALUE;
  if (dependencyData == nullptr || dependencies == nullptr ||
      std::all_of(dependencyData, dependencyData + numDependencies, IsPlain)) {
    return Add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
  }
  CUgraphNode node = nullptr;
  LONGWIRE_TRY(Add(&node, hGraph, nullptr, 0, nodeParams));
  std::vector<CUgraphNode> to(numDependencies, node);
  CUresult result = forward::cuGraphAddDependencies_v2(hGraph, dependencies, to.data(),
                                                       dependencyData, numDependencies);
  if (result == CUDA_SUCCESS) {
    *phGraphNode = node;
  } else {
    hand::cuGraphDestroyNode(node);
  }
  return result;
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : Set(hNode, nodeParams);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams* nodeParams) {
  return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE
                               : SetInExec(hGraphExec, hNode, nodeParams);
}

}  // namespace longwire::shim::hand
