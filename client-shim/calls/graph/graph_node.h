// Shared by the calls that add nodes to graphs or change them.
#pragma once

#include <cuda.h>

#include "client-shim/context/context.h"
#include "client-shim/entry/handles.h"
#include "client-shim/session/session.h"
#include "longwire/calls.h"
#include "wire/limits.h"

namespace longwire::shim::hand {

inline uint32_t CurrentNumber() {
  Context* owner = nullptr;
  return RequireOwner(&owner) == CUDA_SUCCESS ? owner->number.load() : 0;
}

// The context that a node names, else the current one.
inline CUresult ContextOf(CUcontext handle, Context** context) {
  if (handle == nullptr) return RequireHealthyContext(context);
  Context* found = FindContext(handle);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = found->home;
  return CUDA_SUCCESS;
}

// False for a number of nodes that no record can hold.
inline bool IsCount(size_t count) { return count <= wire::kMaxRecordBytes / sizeof(uint64_t); }

// Writes the graph and the dependencies of a new node into `call`. CUDA_ERROR_INVALID_VALUE for a
// handle that is no graph, or a missing list.
template <class Call>
CUresult SetPlace(CUgraph graph, const CUgraphNode* dependencies, size_t count, Call* call) {
  if ((count != 0 && dependencies == nullptr) || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  call->graph = ToWire(graph);
  if (call->graph == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) call->dependency.push_back(ToWire(dependencies[i]));
  return CUDA_SUCCESS;
}

// Writes the node to change into `call`: in an executable, or (`exec` null) in its graph.
template <class Call>
CUresult SetChanged(const CUgraphExec* exec, CUgraphNode node, Call* call) {
  call->node = ToWire(node);
  if (exec != nullptr) call->exec = ToWire(*exec);
  bool wrong = call->node == 0 || (exec != nullptr && call->exec == 0);
  return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult AddConditionalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            size_t count, CUDA_CONDITIONAL_NODE_PARAMS* params);

// Sends a call with lists, of any length, and waits for the reply.
template <class Call>
auto Ask(uint32_t context, const Call& call) {
  const Where where = WhereOfNumber(context);
  return where.session->CallAndWait(where, call, call.EncodedBytes());
}

}  // namespace longwire::shim::hand
