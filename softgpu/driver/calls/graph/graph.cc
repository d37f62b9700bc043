// Graphs as a whole: structure, clones, executables, launches.
#include <algorithm>

#include "softgpu/driver/calls/graph/conditional.h"
#include "softgpu/driver/calls/old_forms.h"
#include "softgpu/driver/graph/graph_memory.h"
#include "softgpu/driver/stream/capture.h"
#include "softgpu/driver/stream/graph_exec.h"

namespace softgpu {
namespace {

// The callers' arrays: null asks for the count; else up to *count entries, the rest made null. An
// array without room is a mistake.
template <class T>
CUresult Fill(const std::vector<T>& values, T* out, size_t* count) {
  if (out != nullptr) {
    if (*count == 0) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < *count; ++i) out[i] = i < values.size() ? values[i] : T{};
    *count = std::min(*count, values.size());
  } else {
    *count = values.size();
  }
  return CUDA_SUCCESS;
}

CUresult ListNodes(CUgraph handle, CUgraphNode* out, size_t* count, bool roots_only) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(handle);
  if (!graph || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> nodes;
  for (auto& node : graph->nodes) {
    if (!roots_only || node->dependencies.empty()) nodes.push_back(NodeHandle(node.get()));
  }
  return Fill(nodes, out, count);
}

CUresult ListNeighbours(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* edges, size_t* count,
                        bool dependents) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto node = Driver::Get().nodes.Find(handle);
  if (!node || count == nullptr || (edges != nullptr && out == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<CUgraphNode> nodes;
  if (dependents) {
    for (auto& other : node->graph->nodes) {
      auto& needed = other->dependencies;
      if (std::find(needed.begin(), needed.end(), node.get()) != needed.end()) {
        nodes.push_back(NodeHandle(other.get()));
      }
    }
  } else {
    for (GraphNode* dependency : node->dependencies) nodes.push_back(NodeHandle(dependency));
  }
  LONGWIRE_TRY(Fill(nodes, out, count));
  if (edges != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
  return CUDA_SUCCESS;
}

CUresult ChangeEdges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                     bool add) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(handle);
  if (!graph || (count != 0 && (from == nullptr || to == nullptr))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    auto source = Driver::Get().nodes.Find(from[i]), target = Driver::Get().nodes.Find(to[i]);
    if (!source || !target || source->graph != graph.get() || target->graph != graph.get()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto& needed = target->dependencies;
    bool present = std::find(needed.begin(), needed.end(), source.get()) != needed.end();
    if (present == add || source == target) return CUDA_ERROR_INVALID_VALUE;
    if (add) {
      needed.push_back(source.get());
    } else {
      std::erase(needed, source.get());
    }
  }
  return CUDA_SUCCESS;
}

CUresult Instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags,
                     CUgraphInstantiateResult* result) {
  LONGWIRE_TRY(EnterUnsafe());
  constexpr unsigned long long kKnown = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return Refuse("device graph launch");
  if (handle == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(graph_handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (graph->moved) return CUDA_ERROR_NOT_SUPPORTED;
  if (SortNodes(*graph).empty() && !graph->nodes.empty()) {  // a cycle
    *result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    return CUDA_ERROR_INVALID_VALUE;
  }
  LONGWIRE_TRY(CheckConditions(*graph, result));
  auto exec = std::make_shared<GraphExec>();
  exec->plan = CloneGraph(*graph, false);
  LONGWIRE_TRY(ChooseClusters(*exec->plan));
  LONGWIRE_TRY(ClaimGraphMemory(*exec->plan, exec));
  exec->flags = flags;
  *handle = reinterpret_cast<CUgraphExec>(Driver::Get().execs.Add(std::move(exec)));
  *result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  LONGWIRE_TRY(Enter());
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = reinterpret_cast<CUgraph>(Driver::Get().graphs.Add(std::make_shared<Graph>()));
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(handle);
  if (!graph || graph->owned_by_node) return CUDA_ERROR_INVALID_VALUE;
  ForgetNodes(*graph);
  Driver::Get().graphs.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(original);
  if (!graph || clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (IsUnique(*graph)) return CUDA_ERROR_NOT_SUPPORTED;
  *clone = reinterpret_cast<CUgraph>(Driver::Get().graphs.Add(CloneGraph(*graph, true)));
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* node, CUgraphNode original, CUgraph clone) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(clone);
  if (!graph || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (auto& copy : graph->nodes) {
    if (NodeHandle(copy->original) == original) {
      *node = NodeHandle(copy.get());
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto node = Driver::Get().nodes.Find(handle);
  if (!node || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = TypeOf(node->operation);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return ListNodes(graph, nodes, count, false);
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return ListNodes(graph, nodes, count, true);
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edges, size_t* count) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto graph = Driver::Get().graphs.Find(handle);
  if (!graph || count == nullptr || (from == nullptr) != (to == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<CUgraphNode> sources, targets;
  for (auto& node : graph->nodes) {
    for (GraphNode* dependency : node->dependencies) {
      sources.push_back(NodeHandle(dependency));
      targets.push_back(NodeHandle(node.get()));
    }
  }
  size_t room = *count;
  LONGWIRE_TRY(Fill(sources, from, &room));
  LONGWIRE_TRY(Fill(targets, to, count));
  if (edges != nullptr) std::fill_n(edges, *count, CUgraphEdgeData{});
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* edges,
                                       size_t* count) {
  return ListNeighbours(node, nodes, edges, count, false);
}
CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* nodes,
                                         CUgraphEdgeData* edges, size_t* count) {
  return ListNeighbours(node, nodes, edges, count, true);
}
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return ChangeEdges(graph, from, to, count, true);
}
CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData*, size_t count) {
  return ChangeEdges(graph, from, to, count, false);
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  LONGWIRE_TRY(Enter());
  base::MutexLock lock(Driver::mutex);
  auto node = Driver::Get().nodes.Remove(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  Graph& graph = *node->graph;
  std::erase(graph.nodes, node);
  for (auto& other : graph.nodes) std::erase(other->dependencies, node.get());
  for (auto& child : ChildrenOf(node->operation)) {
    ForgetNodes(*child);
    Driver::Get().graphs.Remove(child.get());
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  CUgraphInstantiateResult result;
  return Instantiate(exec, graph, flags, &result);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  return Instantiate(exec, graph, params->flags, &params->result_out);
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  LONGWIRE_TRY(Enter());
  auto exec = Driver::Get().execs.Find(handle);
  if (!exec || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  LONGWIRE_TRY(EnterUnsafe());
  return Driver::Get().execs.Remove(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// There is nothing to upload: a launch runs from the same memory either way.
CUresult cuGraphUpload(CUgraphExec exec, CUstream handle) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto stream = FindStream(*context, handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!Driver::Get().execs.Find(exec)) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(Driver::mutex);
  return RefuseWhileCapturing(*stream);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  auto stream = FindStream(*context, stream_handle);
  auto exec = Driver::Get().execs.Find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  stream->WaitForRoom();
  base::MutexLock lock(Driver::mutex);
  return LaunchGraph(*exec, *stream);
}
