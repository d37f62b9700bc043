// Random programs of graphs, held against a model: graphs built node by node, captured, cloned and
// nested, of kernels, fills, copies between host and device, and host functions; their executables
// changed node by node or as a whole, switched off in part, and launched again.
//
//     driver_graph_random [SEED [PROGRAMS [trace]]]
//
// Program N of a run has the seed SEED + N and can be run alone.
#include "driver_graph_random.h"

#include <algorithm>
#include <random>
#include <string>

namespace {

class Program {
 public:
  Program(GraphProgram& device, unsigned seed, bool trace)
      : machine_(device), random_(seed), seed_(seed), trace_(trace) {}
  ~Program() {
    machine_.Settle();
    for (Exec& exec : execs_) CHECK_DRIVER(cuGraphExecDestroy(exec.handle));
    for (auto& graph : graphs_) CHECK_DRIVER(cuGraphDestroy(graph->handle));
  }
  Program(const Program&) = delete;

  void Run() {
    for (step_ = 0; step_ < 60; ++step_) {
      switch (Below(12)) {
        case 0:
          NewGraph();
          break;
        case 1:
          Instantiate();
          break;
        case 2:
          ChangeGraph();
          break;
        case 3:
        case 4:
          ChangeExec();
          break;
        case 5:
          Update();
          break;
        case 6:
          Switch();
          break;
        case 7:
          Direct();
          break;
        case 8:
          Compare();
          break;
        case 9:
          if (Below(4) == 0) Destroy();
          break;
        default:
          Launch();
      }
    }
    Compare();
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  void Say(const char* what, size_t which) const {
    if (trace_) std::printf("%3d %s %zu\n", step_, what, which);
  }

  // A value of any kind but a child.
  Op NewOp() {
    Op op;
    op.kind = static_cast<Kind>(Below(4));
    Vary(&op);
    return op;
  }
  // Other parameters, as a node of this kind may get them: a copy keeps its kinds of memory.
  void Vary(Op* op) {
    op->factor = Below(7) - 3;
    const auto choose = [&](int before, bool (*fits)(int)) {
      for (;;) {
        const int buffer = Below(kBuffers);
        const bool alike =
            IsHost(buffer) == IsHost(before) && IsPageable(buffer) == IsPageable(before);
        if (fits(buffer) && (before < 0 || alike)) return buffer;
      }
    };
    const bool copies = op->kind == Kind::kCopy, hosts = op->kind == Kind::kHost;
    do {
      op->to = choose(op->to, copies ? IsAny : hosts ? IsHost : IsDevice);
      op->from = choose(op->from, copies ? IsAny : IsDevice);
    } while (copies && op->from == op->to);
    if (!copies) return;
    op->ints = Below(2) == 0 ? kInts : kInts / 4 * (1 + Below(3));
    op->first_from = Below(kInts - op->ints + 1) / 16 * 16;
    op->first_to = Below(kInts - op->ints + 1) / 16 * 16;
  }

  void NewGraph() {
    if (graphs_.size() >= 6) return;
    auto graph = std::make_unique<Graph>();
    std::vector<Op> ops(static_cast<size_t>(1 + Below(5)));
    for (Op& op : ops) op = NewOp();
    const int how = graphs_.empty() ? Below(2) : Below(4);
    if (how == 0) machine_.Capture(ops, graph.get());
    if (how == 1) machine_.Build(ops, graph.get());
    const Graph* other = graphs_.empty() ? nullptr : graphs_[Some(graphs_)].get();
    if (how == 2) machine_.Clone(*other, graph.get());
    if (how == 3) {
      machine_.Build(ops, graph.get());
      if (!other->has_child) machine_.AddChild(*other, graph.get());
    }
    Say(how == 0 ? "capture" : how == 1 ? "build" : how == 2 ? "clone" : "nest", graphs_.size());
    graphs_.push_back(std::move(graph));
  }
  template <class All>
  size_t Some(const All& all) {
    return static_cast<size_t>(Below(static_cast<int>(all.size())));
  }

  void Instantiate() {
    if (graphs_.empty() || execs_.size() >= 6) return;
    const size_t which = Some(graphs_);
    Say("instantiate", which);
    const std::optional<Exec> exec = machine_.Instantiate(graphs_[which].get());
    if (exec) execs_.push_back(*exec);
  }
  void ChangeGraph() {
    if (graphs_.empty()) return;
    const size_t which = Some(graphs_);
    Graph& graph = *graphs_[which];
    Node& node = graph.nodes[Some(graph.nodes)];
    if (node.op.kind == Kind::kChild) return;
    Say("change graph", which);
    Vary(&node.op);
    machine_.SetInGraph(node);
  }
  void ChangeExec() {
    if (execs_.empty()) return;
    const size_t which = Some(execs_);
    Exec& exec = execs_[which];
    if (exec.graph == nullptr) return;
    for (int changes = 1 + Below(4); changes > 0; --changes) {
      Node& node = exec.nodes[Some(exec.nodes)];
      Say("change executable", which);
      if (node.op.kind == Kind::kChild) {
        if (node.origin == nullptr) continue;
        // The graph of the node, with what was changed in it meanwhile.
        if (machine_.SetChild(exec, node)) node.op.child = node.origin->ops();
        continue;
      }
      Node changed = node;
      Vary(&changed.op);
      if (machine_.SetInExec(exec, changed)) node = changed;
    }
  }
  // From the graph that it was made from, as it is now.
  void Update() {
    if (execs_.empty()) return;
    const size_t which = Some(execs_);
    const Exec& exec = execs_[which];
    const bool all_on =
        std::all_of(exec.nodes.begin(), exec.nodes.end(), [](const Node& node) { return node.on; });
    if (exec.graph == nullptr || !all_on) return;
    Say("update", which);
    machine_.Update(&execs_[which]);
  }
  void Switch() {
    if (execs_.empty()) return;
    const size_t which = Some(execs_);
    if (execs_[which].graph == nullptr) return;
    Node& node = execs_[which].nodes[Some(execs_[which].nodes)];
    if (node.op.kind == Kind::kChild || node.op.kind == Kind::kHost) return;
    Say("switch", which);
    node.on = !node.on;
    machine_.Enable(execs_[which], node);
  }
  void Launch() {
    if (execs_.empty()) return;
    const size_t which = Some(execs_);
    Say("launch", which);
    machine_.Launch(execs_[which], Below(2));
  }
  void Direct() {
    const Op op = NewOp();
    Say("direct", static_cast<size_t>(op.kind));
    machine_.Do(op, Below(2));
  }
  void Compare() {
    Say("compare", 0);
    machine_.Settle();
    machine_.Compare(seed_, step_);
    for (int buffer = 0; buffer < kBuffers; ++buffer) {
      if (IsHost(buffer) && Below(2) == 0) machine_.Write(buffer, Below(1000));
    }
  }
  void Destroy() {
    if (!execs_.empty() && Below(2) == 0) {
      const size_t which = Some(execs_);
      Say("destroy executable", which);
      CHECK_DRIVER(cuGraphExecDestroy(execs_[which].handle));
      execs_.erase(execs_.begin() + static_cast<ptrdiff_t>(which));
      return;
    }
    if (graphs_.empty()) return;
    const size_t which = Some(graphs_);
    const Graph* gone = graphs_[which].get();
    Say("destroy graph", which);
    for (Exec& exec : execs_) {
      if (exec.graph == gone) exec.graph = nullptr;
      for (Node& node : exec.nodes) Forget(&node, gone);
    }
    for (auto& graph : graphs_) {
      for (Node& node : graph->nodes) Forget(&node, gone);
    }
    CHECK_DRIVER(cuGraphDestroy(gone->handle));
    graphs_.erase(graphs_.begin() + static_cast<ptrdiff_t>(which));
  }

  static void Forget(Node* node, const Graph* gone) {
    if (node->origin == gone) node->origin = nullptr;
  }

  Machine machine_;
  std::mt19937 random_;
  const unsigned seed_;
  const bool trace_;
  int step_ = 0;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<Exec> execs_;
};

}  // namespace

int main(int count, char** words) {
  GraphProgram device;
  const unsigned seed = count > 1 ? static_cast<unsigned>(std::stoul(words[1])) : 1;
  const unsigned programs = count > 2 ? static_cast<unsigned>(std::stoul(words[2])) : 20;
  for (unsigned i = 0; i < programs; ++i) Program(device, seed + i, count > 3).Run();
  std::printf("PASS driver_graph_random\n");
  return 0;
}
