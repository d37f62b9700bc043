// Conditional nodes of graphs. The driver cannot list a node's bodies, and does not check handles
// of conditions; both are done here.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

class Conditionals {
 public:
  static constexpr size_t kMaxConditions = size_t{1} << 20;
  static constexpr unsigned kMaxBodies = 1 << 16;  // of one node

  // Adds a handle that the driver has created for the graph. False if there are too many.
  bool Add(CUgraphConditionalHandle condition, CUgraph graph);
  bool Knows(CUgraphConditionalHandle condition) const;

  void AddNode(CUgraphNode node, std::vector<CUgraph> bodies);
  std::vector<CUgraph> BodiesOf(CUgraphNode node) const;
  bool IsBody(CUgraph graph) const;

  void ForgetNode(CUgraphNode node);
  void ForgetGraph(CUgraph graph);

 private:
  mutable base::Mutex mutex_{base::ranks::kConditionals};
  std::unordered_map<CUgraphConditionalHandle, CUgraph> conditions_ LONGWIRE_GUARDED_BY(mutex_);
  std::unordered_map<CUgraphNode, std::vector<CUgraph>> bodies_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
