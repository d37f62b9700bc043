#include "softgpu/driver/stream/graph_exec.h"

#include "softgpu/driver/graph/graph_memory.h"
#include "softgpu/driver/module/cluster.h"
#include "softgpu/driver/stream/run.h"
#include "softgpu/engine/run/conditions.h"

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
void Flatten(const Graph& graph, std::vector<Step>* steps) LONGWIRE_REQUIRES(Driver::mutex) {
  for (GraphNode* node : SortNodes(graph)) {
    if (!node->enabled) continue;
    Step step{node->operation, nullptr, nullptr, {}};
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

// The conditions that each launch sets to their initial values.
void CollectAssigned(const Graph& graph, std::vector<std::shared_ptr<Condition>>* conditions)
    LONGWIRE_REQUIRES(Driver::mutex) {
  for (auto& condition : graph.conditions) {
    if (condition->assigned) conditions->push_back(condition);
  }
  for (auto& node : graph.nodes) {
    for (auto& child : ChildrenOf(node->operation)) CollectAssigned(*child, conditions);
  }
}

}  // namespace

CUresult ChooseClusters(Graph& plan) {
  for (auto& node : plan.nodes) {
    auto* kernel = std::get_if<KernelOperation>(&node->operation);
    if (kernel != nullptr) LONGWIRE_TRY(ChooseCluster(*kernel->function, &kernel->config));
    for (auto& child : ChildrenOf(node->operation)) LONGWIRE_TRY(ChooseClusters(*child));
  }
  return CUDA_SUCCESS;
}

// All nodes run one after the other, at the launch's place in the stream and behind the launches
// before it of the same executable.
CUresult LaunchGraph(GraphExec& exec, Stream& stream) {
  LONGWIRE_TRY(RefuseWhileCapturing(stream));
  const bool free_first = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  LONGWIRE_TRY(TakeGraphMemory(*exec.plan, free_first));
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
