#include "softgpu/driver/graph.h"

#include <algorithm>

#include "softgpu/driver/run.h"
#include "softgpu/engine/conditions.h"

namespace softgpu {
namespace {

// One node's work as a launch runs it.
struct Step {
  Operation operation;
  CompletionRef record;                   // of an event record: what the launch finishes
  CompletionRef await;                    // of an event wait
  std::vector<std::vector<Step>> bodies;  // of a conditional
};

// Appends the nodes' work in a runnable order, child graphs in their places. Events are resolved
// now: a record becomes the event's latest, a wait is for the latest record at this moment.
void Flatten(const Graph& graph, std::vector<Step>* steps) {
  for (GraphNode* node : SortNodes(graph)) {
    if (!node->enabled) continue;
    Step step{node->operation, nullptr, nullptr};
    if (auto* child = std::get_if<ChildGraphOperation>(&node->operation)) {
      Flatten(*child->graph, steps);
      continue;
    }
    if (auto* record = std::get_if<EventRecordOperation>(&node->operation)) {
      step.record = std::make_shared<Completion>();
      record->event->captured = false;
      record->event->record = step.record;
    } else if (auto* wait = std::get_if<EventWaitOperation>(&node->operation)) {
      step.await = wait->event->record;
    }
    if (auto* conditional = std::get_if<ConditionalOperation>(&node->operation)) {
      for (auto& body : conditional->bodies) Flatten(*body, &step.bodies.emplace_back());
    }
    steps->push_back(std::move(step));
  }
}

void RunSteps(const std::vector<Step>& steps, Context& context);

bool MayGoOn(const Context& context) { return !context.cancelled && Driver::Get().fault == 0; }

void RunConditional(const Step& step, Context& context) {
  const auto& conditional = std::get<ConditionalOperation>(step.operation);
  while (MayGoOn(context)) {
    const std::shared_ptr<Graph>* chosen = conditional.Chosen();
    if (chosen == nullptr) return;
    RunSteps(step.bodies[static_cast<size_t>(chosen - conditional.bodies.data())], context);
    if (conditional.type != CU_GRAPH_COND_TYPE_WHILE) return;
  }
}

void RunSteps(const std::vector<Step>& steps, Context& context) {
  bool failed = false;
  for (const Step& step : steps) {
    if (step.await) step.await->Wait();
    if (!failed && !step.bodies.empty()) {
      RunConditional(step, context);
    } else if (!failed && MayGoOn(context)) {
      if (Status status = Run(step.operation, context); !status.ok()) {
        failed = true;
        Driver::Get().Fail(context, status.code, status.message);
      }
    }
    if (step.record) step.record->Finish();  // even after a failure: others may wait for it
  }
}

}  // namespace

CUstreamCaptureMode& ThreadCaptureMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult AddCaptured(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto node = AddNode(*capture.graph, std::move(operation), stream.capture_nodes);
  stream.capture_nodes = {node.get()};
  return CUDA_SUCCESS;
}

CUresult CheckLegacyCapture(Stream& stream) {
  if (!stream.legacy()) return CUDA_SUCCESS;
  for (auto& other : stream.owner().streams) {
    if (other->capture && other->blocking()) {
      other->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return CUDA_SUCCESS;
}

CUresult CheckUnsafeInCapture() {
  auto mode = ThreadCaptureMode();
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  std::lock_guard lock(Driver::Get().mutex);
  for (auto& context : Driver::Get().contexts.All()) {
    for (auto& stream : context->streams) {
      if (!stream->capture || stream->capture->origin != stream.get()) continue;
      Capture& capture = *stream->capture;
      bool own = capture.thread == std::this_thread::get_id() &&
                 capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED;
      bool global =
          capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
      if (!own && !global) continue;
      capture.invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

CUresult EnterUnsafe(Context** context) {
  TRY(context != nullptr ? Enter(context) : Enter());
  return CheckUnsafeInCapture();
}

CUresult RefuseWhileCapturing(Stream& stream) {
  if (!stream.capture) return CheckLegacyCapture(stream);
  stream.capture->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

std::shared_ptr<GraphNode> AddNode(Graph& graph, Operation operation,
                                   std::vector<GraphNode*> dependencies, bool visible) {
  auto node = std::make_shared<GraphNode>();
  node->graph = &graph;
  node->operation = std::move(operation);
  node->dependencies = std::move(dependencies);
  graph.nodes.push_back(node);
  if (visible) Driver::Get().nodes.Add(node);
  return node;
}

std::shared_ptr<Graph> CloneGraph(const Graph& graph, bool visible) {
  auto clone = std::make_shared<Graph>();
  clone->user_objects = graph.user_objects;
  clone->conditions = graph.conditions;
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (auto& node : graph.nodes) {
    Operation operation = node->operation;
    if (auto* conditional = std::get_if<ConditionalOperation>(&operation)) {
      for (auto& body : conditional->bodies) body = CloneGraph(*body, visible);
    }
    if (auto* child = std::get_if<ChildGraphOperation>(&operation)) {
      child->graph = CloneGraph(*child->graph, visible);
      child->graph->owned_by_node = true;
      if (visible) Driver::Get().graphs.Add(child->graph);
    }
    auto copy = AddNode(*clone, std::move(operation), {}, visible);
    copy->original = node.get();
    copy->enabled = node->enabled;
    copies[node.get()] = copy.get();
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (GraphNode* dependency : graph.nodes[i]->dependencies) {
      clone->nodes[i]->dependencies.push_back(copies.at(dependency));
    }
  }
  return clone;
}

std::vector<std::shared_ptr<Graph>> ChildrenOf(const Operation& operation) {
  if (auto* child = std::get_if<ChildGraphOperation>(&operation)) return {child->graph};
  auto* conditional = std::get_if<ConditionalOperation>(&operation);
  return conditional != nullptr ? conditional->bodies : std::vector<std::shared_ptr<Graph>>();
}

bool IsUnique(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](auto& node) {
    return std::holds_alternative<ConditionalOperation>(node->operation) ||
           std::holds_alternative<MemoryAllocOperation>(node->operation) ||
           std::holds_alternative<MemoryFreeOperation>(node->operation);
  });
}

std::vector<GraphNode*> SortNodes(const Graph& graph) {
  std::vector<GraphNode*> sorted;
  std::unordered_map<const GraphNode*, size_t> missing;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> dependents;
  for (auto& node : graph.nodes) {
    missing[node.get()] = node->dependencies.size();
    for (GraphNode* dependency : node->dependencies) dependents[dependency].push_back(node.get());
    if (node->dependencies.empty()) sorted.push_back(node.get());
  }
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (GraphNode* dependent : dependents[sorted[i]]) {
      if (--missing[dependent] == 0) sorted.push_back(dependent);
    }
  }
  if (sorted.size() != graph.nodes.size()) sorted.clear();
  return sorted;
}

void ForgetNodes(Graph& graph) {
  for (auto& node : graph.nodes) {
    for (auto& child : ChildrenOf(node->operation)) {
      ForgetNodes(*child);
      Driver::Get().graphs.Remove(child.get());
    }
    Driver::Get().nodes.Remove(node.get());
  }
  for (auto& condition : graph.conditions) Driver::Get().conditions.Remove(condition.get());
}

CUgraphNodeType TypeOf(const Operation& operation) {
  constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
      CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
      CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
      CU_GRAPH_NODE_TYPE_GRAPH,      CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      CU_GRAPH_NODE_TYPE_MEM_FREE,   CU_GRAPH_NODE_TYPE_CONDITIONAL};
  static_assert(std::size(kTypes) == std::variant_size_v<Operation>);
  return kTypes[operation.index()];
}

namespace {

// The conditions that each launch sets to their initial values.
void CollectAssigned(const Graph& graph, std::vector<std::shared_ptr<Condition>>* conditions) {
  for (auto& condition : graph.conditions) {
    if (condition->assigned) conditions->push_back(condition);
  }
  for (auto& node : graph.nodes) {
    for (auto& child : ChildrenOf(node->operation)) CollectAssigned(*child, conditions);
  }
}

}  // namespace

// All nodes run one after the other, at the launch's place in the stream and behind the launches
// before it of the same executable. Driver::mutex held.
CUresult LaunchGraph(GraphExec& exec, Stream& stream) {
  TRY(RefuseWhileCapturing(stream));
  TRY(TakeGraphMemory(exec));
  auto steps = std::make_shared<std::vector<Step>>();
  Flatten(*exec.plan, steps.get());
  Context* context = &stream.context();
  std::vector<std::shared_ptr<Condition>> conditions;
  CollectAssigned(*exec.plan, &conditions);
  std::vector<CompletionRef> before;
  if (exec.last) before.push_back(exec.last);
  // The plan's user objects stay until the launch is over.
  auto run = [steps, context, plan = exec.plan, conditions](int) {
    for (auto& one : conditions) SetCondition(one->handle(), one->initial);
    RunSteps(*steps, *context);
  };
  exec.last = Enqueue(stream, std::move(run), std::move(before));
  return CUDA_SUCCESS;
}

}  // namespace softgpu
