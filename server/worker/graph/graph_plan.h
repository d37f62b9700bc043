// The plan of an executable: which copies' bytes are exchanged around which host function. It is
// computed from the edges at instantiation. All other bytes are exchanged before or after the
// launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "server/worker/graph/graph_charges.h"
#include "server/worker/graph/graph_parts.h"

namespace longwire::worker {

struct PlanEntry {
  CUgraphNode node = nullptr;  // of the graph from which the executable was instantiated
  GraphPartRef part;
  bool read_at_host = false;   // the bytes are fetched after a host function
  bool write_at_host = false;  // the bytes are sent before a host function
  // For a host function: the entries whose bytes must have arrived in the program when it runs, and
  // those that read what it wrote.
  std::vector<size_t> before, after;
  bool enabled = true;  // else the node does nothing: no bytes are exchanged for it

  bool Reads() const { return enabled && part->read.transfer != 0; }
  bool Writes() const { return enabled && part->write.transfer != 0; }
  bool IsOrdered() const { return !before.empty() || !after.empty(); }
};

// A set of entries, by number.
class EntrySet {
 public:
  explicit EntrySet(size_t entries = 0) : words_((entries + 63) / 64) {}
  void Add(size_t entry) { words_[entry / 64] |= uint64_t{1} << entry % 64; }
  bool Has(size_t entry) const { return (words_[entry / 64] >> entry % 64 & 1) != 0; }
  void AddAll(const EntrySet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  size_t size() const;

 private:
  std::vector<uint64_t> words_;
};

struct GraphPlan {
  std::vector<PlanEntry> entries;
  std::vector<EntrySet> above;   // of each entry: those that come before it
  std::vector<size_t> in_order;  // each entry behind those above it

  // Decides what is exchanged around which host function, from the entries' parts and what is above
  // them; again when a part has changed. CUDA_ERROR_NOT_SUPPORTED: see MakePlan.
  CUresult Arrange();

  bool WritesProgram() const;
  // Bytes go there and back while it runs, and functions of the program run.
  bool CallsProgram() const;
  calls::GraphEvents Events() const;
  // Used by one launch at a time: blocks, and host functions around which bytes are exchanged.
  std::vector<std::atomic<bool>*> Exclusive() const;
};

struct Graph {
  uint64_t id = 0;
  CUgraph handle = nullptr;
};

struct GraphExec {
  uint64_t id = 0;
  CUgraphExec handle = nullptr;
  std::shared_ptr<const GraphPlan> plan;  // guarded by Graphs' lock; never null
  GraphCharges::Taken charged;            // until it is destroyed, and so the next
  GraphCharges::Shared shared_charge;
};

using FindPart = std::function<GraphPartRef(CUgraphNode)>;
// The bodies of a conditional node; empty for other nodes.
using FindBodies = std::function<std::vector<CUgraph>(CUgraphNode)>;

// CUDA_ERROR_NOT_SUPPORTED if a copy reads memory of the program of which another copy before it
// may write a part, and the two do not share pinned memory, nor is a host function between them; or
// if a body that may not run writes to the program's memory.
CUresult MakePlan(const DriverTable& driver, CUgraph graph, const FindPart& find,
                  const FindBodies& bodies, GraphPlan* plan);

// Calls visit(graph, node, type) for each node of the graph, of its child graphs and bodies.
using VisitNode = std::function<void(CUgraph, CUgraphNode, CUgraphNodeType)>;
CUresult VisitNodes(const DriverTable& driver, CUgraph graph, const FindBodies& bodies,
                    const VisitNode& visit);

}  // namespace longwire::worker
