// What the calls that add nodes to graphs and change them have in common.
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

// More nodes than a record takes are a count that was never meant.
inline bool IsCount(size_t count) { return count <= wire::kMaxRecordBytes / sizeof(uint64_t); }

// Where a new node goes. CUDA_ERROR_INVALID_VALUE for what is no graph, or a missing list.
template <class Call>
CUresult SetPlace(CUgraph graph, const CUgraphNode* dependencies, size_t count, Call* call) {
  if ((count != 0 && dependencies == nullptr) || !IsCount(count)) return CUDA_ERROR_INVALID_VALUE;
  call->graph = ToWire(graph);
  if (call->graph == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) call->dependency.push_back(ToWire(dependencies[i]));
  return CUDA_SUCCESS;
}

// Which node is changed: in an executable, or (exec null) in its graph.
template <class Call>
CUresult SetChanged(const CUgraphExec* exec, CUgraphNode node, Call* call) {
  call->node = ToWire(node);
  if (exec != nullptr) call->exec = ToWire(*exec);
  bool wrong = call->node == 0 || (exec != nullptr && call->exec == 0);
  return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult AddConditionalNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                            size_t count, CUDA_CONDITIONAL_NODE_PARAMS* params);

// A record with lists, as long as it is.
template <class Call>
auto Ask(uint32_t context, const Call& call) {
  return TheSession().CallAndWait({context, nullptr, 0}, call, 256 + call.EncodedBytes());
}

}  // namespace longwire::shim::hand
