#include "server/worker/graph/graph_plan.h"

#include <algorithm>
#include <bit>
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

  // The entries that come before this one.
  EntrySet Above(size_t entry) const {
    EntrySet above(plan_->entries.size());
    std::vector<bool> seen(parents_.size());
    std::vector<size_t> open = {vertex_of_[entry]};
    while (!open.empty()) {
      size_t vertex = open.back();
      open.pop_back();
      for (size_t parent : parents_[vertex]) {
        if (seen[parent]) continue;
        seen[parent] = true;
        if (entry_[parent] != kNoEntry) above.Add(entry_[parent]);
        open.push_back(parent);
      }
    }
    return above;
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
      plan_->entries.push_back({node, std::move(part), false, false, {}, {}, true});
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

bool WritesOf(const PlanEntry& entry) { return entry.part->write.transfer != 0; }
bool ReadsOf(const PlanEntry& entry) { return entry.part->read.transfer != 0; }

// All that is above a host function which is above this entry: what of it writes to the program has
// been sent, and no function of it is the nearest one.
EntrySet BeyondHosts(const GraphPlan& plan, size_t of) {
  EntrySet beyond(plan.entries.size());
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    if (plan.above[of].Has(i) && plan.entries[i].part->is_host) beyond.AddAll(plan.above[i]);
  }
  return beyond;
}

// What the host function must find written, and was not sent at another one before it.
void OrderWrites(size_t host, GraphPlan* plan) {
  const EntrySet sent = BeyondHosts(*plan, host);
  for (size_t i = 0; i < plan->entries.size(); ++i) {
    if (!WritesOf(plan->entries[i]) || !plan->above[host].Has(i) || sent.Has(i)) continue;
    plan->entries[host].before.push_back(i);
    plan->entries[i].write_at_host = true;
  }
}

// Where the bytes of `read` come from: the program, before the launch or after the nearest host
// functions above; or a copy above, whose bytes have not been in the program by then.
CUresult OrderRead(size_t read, GraphPlan* plan) {
  std::vector<PlanEntry>& entries = plan->entries;
  const GraphCopy& copy = entries[read].part->read;
  const EntrySet sent = BeyondHosts(*plan, read);
  std::vector<size_t> shared;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!WritesOf(entries[i]) || !plan->above[read].Has(i) || sent.Has(i)) continue;
    const GraphCopy& write = entries[i].part->write;
    if (write.block == copy.block) {
      shared.push_back(i);
    } else if (copy.MayOverlap(write)) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].part->is_host || !plan->above[read].Has(i) || sent.Has(i)) continue;
    // What is fetched here must not replace what such a copy writes.
    const bool first =
        std::ranges::all_of(shared, [&](size_t write) { return plan->above[write].Has(i); });
    if (!first) continue;
    entries[i].after.push_back(read);
    entries[read].read_at_host = true;
  }
  return CUDA_SUCCESS;
}

}  // namespace

size_t EntrySet::size() const {
  size_t count = 0;
  for (uint64_t word : words_) count += static_cast<size_t>(std::popcount(word));
  return count;
}

CUresult GraphPlan::Arrange() {
  for (PlanEntry& entry : entries) {
    entry.before.clear();
    entry.after.clear();
    entry.read_at_host = entry.write_at_host = false;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].part->is_host) OrderWrites(i, this);
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (ReadsOf(entries[i])) LONGWIRE_TRY(OrderRead(i, this));
  }
  return CUDA_SUCCESS;
}

bool GraphPlan::WritesProgram() const {
  return std::any_of(entries.begin(), entries.end(), [](const PlanEntry& entry) {
    return entry.part->write.transfer != 0 || entry.part->ticket != 0;
  });
}

bool GraphPlan::CallsProgram() const {
  return std::ranges::any_of(entries, [](const PlanEntry& entry) { return entry.part->is_host; });
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
    plan->above.push_back(flat.Above(i));
    plan->in_order.push_back(i);
  }
  // Whatever is above an entry has fewer above itself.
  std::ranges::stable_sort(plan->in_order, {}, [&](size_t i) { return plan->above[i].size(); });
  return plan->Arrange();
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
