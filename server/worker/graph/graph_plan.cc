#include "server/worker/graph/graph_plan.h"

#include <algorithm>
#include <unordered_map>

#include "base/try.h"
#include "server/worker/support/log_line.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {
namespace {

constexpr size_t kNoEntry = SIZE_MAX;

CUresult NodesOf(const DriverTable& driver, CUgraph graph, std::vector<CUgraphNode>* nodes) {
  size_t count = 0;
  CUresult result = driver.cuGraphGetNodes(graph, nullptr, &count);
  nodes->resize(count);
  if (result == CUDA_SUCCESS && count != 0) {
    result = driver.cuGraphGetNodes(graph, nodes->data(), &count);
  }
  nodes->resize(std::min(count, nodes->size()));
  return result;
}

// A graph, its child graphs and bodies as one: the node of those is two vertices, around theirs.
class Flattened {
 public:
  Flattened(const DriverTable& driver, const FindPart& find, const FindBodies& bodies,
            GraphPlan* plan)
      : driver_(driver), find_(find), bodies_(bodies), plan_(plan) {}

  // `first`: the vertex that all of the graph comes after. Everything of it comes before `last`.
  CUresult Add(CUgraph graph, size_t first, size_t last) {
    std::vector<CUgraphNode> nodes;
    CUresult result = NodesOf(driver_, graph, &nodes);
    std::unordered_map<CUgraphNode, std::pair<size_t, size_t>> vertices;
    for (size_t i = 0; i < nodes.size() && result == CUDA_SUCCESS; ++i) {
      result = AddNode(nodes[i], first, last, &vertices[nodes[i]]);
    }
    size_t count = 0;
    if (result == CUDA_SUCCESS) {
      result = driver_.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count);
    }
    if (result != CUDA_SUCCESS || count == 0) return result;
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    result = driver_.cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
      parents_[vertices[to[i]].first].push_back(vertices[from[i]].second);
    }
    return result;
  }

  size_t NewVertex() {
    parents_.emplace_back();
    entry_.push_back(kNoEntry);
    return parents_.size() - 1;
  }

  // Calls visit(entry) for the entries above this entry's vertex; true ends the way up there.
  template <class Visit>
  void WalkUp(size_t entry, Visit visit) const {
    std::vector<bool> seen(parents_.size());
    std::vector<size_t> open = {vertex_of_[entry]};
    while (!open.empty()) {
      size_t vertex = open.back();
      open.pop_back();
      for (size_t parent : parents_[vertex]) {
        if (seen[parent]) continue;
        seen[parent] = true;
        bool ends = entry_[parent] != kNoEntry && visit(entry_[parent]);
        if (!ends) open.push_back(parent);
      }
    }
  }

 private:
  CUresult AddNode(CUgraphNode node, size_t first, size_t last, std::pair<size_t, size_t>* pair) {
    CUgraphNodeType type{};
    CUresult result = driver_.cuGraphNodeGetType(node, &type);
    if (result != CUDA_SUCCESS) return result;
    size_t vertex = NewVertex();
    *pair = {vertex, vertex};
    parents_[vertex].push_back(first);
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      pair->second = NewVertex();
      parents_[pair->second].push_back(vertex);
      ++within_bodies_;
      for (CUgraph body : bodies_(node)) {
        if (result == CUDA_SUCCESS) result = Add(body, vertex, pair->second);
      }
      --within_bodies_;
    }
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      pair->second = NewVertex();
      parents_[pair->second].push_back(vertex);
      CUgraph child = nullptr;
      result = driver_.cuGraphChildGraphNodeGetGraph(node, &child);
      if (result == CUDA_SUCCESS) result = Add(child, vertex, pair->second);
    }
    parents_[last].push_back(pair->second);
    GraphPartRef part = find_(node);
    if (part != nullptr && within_bodies_ != 0 && part->write.transfer != 0) {
      LogLine(
          "a body of a conditional node copies into the program's memory: it may not run, so "
          "that nothing can be sent after it; copy behind the conditional node");
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (part != nullptr) {
      entry_[vertex] = plan_->entries.size();
      vertex_of_.push_back(vertex);
      plan_->entries.push_back({node, std::move(part), false, false, {}, {}});
    }
    return result;
  }

  const DriverTable& driver_;
  const FindPart& find_;
  const FindBodies& bodies_;
  GraphPlan* plan_;
  size_t within_bodies_ = 0;                  // one in the other
  std::vector<std::vector<size_t>> parents_;  // by vertex
  std::vector<size_t> entry_;                 // by vertex
  std::vector<size_t> vertex_of_;             // by entry
};

// What the host function `host` must find written. The walk ends at the next host function: what
// lies above that one is its own business.
void OrderWrites(const Flattened& flat, size_t host, GraphPlan* plan) {
  flat.WalkUp(host, [&](size_t above) {
    PlanEntry& entry = plan->entries[above];
    if (entry.part->write.transfer != 0) {
      plan->entries[host].before.push_back(above);
      entry.write_at_host = true;
    }
    return entry.part->is_host;
  });
}

// Where the bytes of `read` come from: the program, before the launch or after the nearest host
// functions above; or a copy above, whose bytes have not been in the program by then.
CUresult OrderRead(const Flattened& flat, size_t read, GraphPlan* plan) {
  std::vector<PlanEntry>& entries = plan->entries;
  const GraphCopy& copy = entries[read].part->read;
  std::vector<size_t> writes, nearest;
  std::vector<bool> sent(entries.size());
  flat.WalkUp(read, [&](size_t above) {
    const GraphCopy& write = entries[above].part->write;
    bool same = write.transfer != 0 && (write.block == copy.block || copy.Overlaps(write));
    if (same) writes.push_back(above);
    for (size_t each : entries[above].before) sent[each] = true;
    return false;
  });
  for (size_t write : writes) {
    if (sent[write]) continue;
    bool shared = entries[write].part->write.block == copy.block;
    return shared ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  }
  flat.WalkUp(read, [&](size_t above) {
    if (!entries[above].part->is_host) return false;
    entries[above].after.push_back(read);
    entries[read].read_at_host = true;
    return true;
  });
  return CUDA_SUCCESS;
}

}  // namespace

bool GraphPlan::WritesProgram() const {
  return std::any_of(entries.begin(), entries.end(), [](const PlanEntry& entry) {
    return entry.part->write.transfer != 0 || entry.part->ticket != 0;
  });
}

calls::GraphEvents GraphPlan::Events() const {
  calls::GraphEvents events;
  for (const PlanEntry& entry : entries) {
    if (entry.part->event == nullptr) continue;
    std::vector<uint64_t>& list = entry.part->waits ? events.wait : events.record;
    uint64_t event = entry.part->event->event;
    if (std::find(list.begin(), list.end(), event) == list.end()) list.push_back(event);
  }
  return events;
}

std::vector<std::atomic<bool>*> GraphPlan::Exclusive() const {
  std::vector<std::atomic<bool>*> flags;
  for (const PlanEntry& entry : entries) {
    if (entry.part->read.block != nullptr) flags.push_back(&entry.part->read.block->busy);
    if (entry.part->write.block != nullptr) flags.push_back(&entry.part->write.block->busy);
    if (entry.IsOrdered()) flags.push_back(&entry.part->busy);
  }
  std::sort(flags.begin(), flags.end());
  flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
  return flags;
}

CUresult MakePlan(const DriverTable& driver, CUgraph graph, const FindPart& find,
                  const FindBodies& bodies, GraphPlan* plan) {
  Flattened flat(driver, find, bodies, plan);
  size_t first = flat.NewVertex(), last = flat.NewVertex();
  LONGWIRE_TRY(flat.Add(graph, first, last));
  for (size_t i = 0; i < plan->entries.size(); ++i) {
    if (plan->entries[i].part->is_host) OrderWrites(flat, i, plan);
  }
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < plan->entries.size() && result == CUDA_SUCCESS; ++i) {
    if (plan->entries[i].part->read.transfer != 0) result = OrderRead(flat, i, plan);
  }
  return result;
}

CUresult VisitNodes(const DriverTable& driver, CUgraph graph, const FindBodies& bodies,
                    const VisitNode& visit) {
  std::vector<CUgraphNode> nodes;
  CUresult result = NodesOf(driver, graph, &nodes);
  for (size_t i = 0; i < nodes.size() && result == CUDA_SUCCESS; ++i) {
    CUgraphNodeType type{};
    LONGWIRE_TRY(driver.cuGraphNodeGetType(nodes[i], &type));
    std::vector<CUgraph> within;
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) within = bodies(nodes[i]);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      result = driver.cuGraphChildGraphNodeGetGraph(nodes[i], &within.emplace_back());
    }
    visit(graph, nodes[i], type);
    for (CUgraph each : within) {
      if (result == CUDA_SUCCESS) result = VisitNodes(driver, each, bodies, visit);
    }
  }
  return result;
}

}  // namespace longwire::worker
