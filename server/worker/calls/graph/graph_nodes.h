// What the calls that add nodes to graphs and change them have in common.
#pragma once

#include <vector>

#include "server/worker/calls/call_context.h"

namespace longwire::worker {

// Where a new node goes.
struct NewNode {
  CUgraph graph = nullptr;
  std::vector<CUgraphNode> dependencies;

  template <class Call>
  CUresult Resolve(CallContext& context, const Call& call) {
    CUresult result = context.Resolve(call.graph, &graph);
    dependencies.resize(call.dependency.size());
    for (size_t i = 0; i < dependencies.size() && result == CUDA_SUCCESS; ++i) {
      result = context.Resolve(call.dependency[i], &dependencies[i]);
    }
    return result;
  }
};

// Which node is changed: in its graph, or in an executable.
struct ChangedNode {
  CUgraphNode node = nullptr;
  std::shared_ptr<GraphExec> exec;  // null: in its graph

  template <class Call>
  CUresult Resolve(CallContext& context, const Call& call) {
    CUresult result = context.Resolve(call.node, &node);
    if (result != CUDA_SUCCESS || call.exec == 0) return result;
    exec = context.session().graphs().exec_table().Find(call.exec);
    return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
};

}  // namespace longwire::worker
