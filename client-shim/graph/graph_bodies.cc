#include "client-shim/graph/graph_bodies.h"

#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct NodeBodies {
  CUgraph graph = nullptr;  // that has the node
  std::vector<CUgraph> bodies;
};

struct GraphBodies {
  base::Mutex mutex{base::ranks::kGraphBodies};
  std::unordered_map<CUgraphNode, NodeBodies> nodes LONGWIRE_GUARDED_BY(mutex);
  std::unordered_map<CUgraph, CUgraphNode> owner LONGWIRE_GUARDED_BY(mutex);  // by body
};

GraphBodies& TheBodies() {
  static NeverDestroyed<GraphBodies> all;
  return *all;
}

void Forget(GraphBodies& all, CUgraph graph) LONGWIRE_REQUIRES(all.mutex);

// With what the bodies' own nodes have.
void Forget(GraphBodies& all, CUgraphNode node) LONGWIRE_REQUIRES(all.mutex) {
  auto taken = all.nodes.extract(node);
  if (taken.empty()) return;
  for (CUgraph body : taken.mapped().bodies) {
    all.owner.erase(body);
    Forget(all, body);
  }
}

void Forget(GraphBodies& all, CUgraph graph) {
  std::vector<CUgraphNode> gone;
  for (auto& [node, bodies] : all.nodes) {
    if (bodies.graph == graph) gone.push_back(node);
  }
  for (CUgraphNode node : gone) Forget(all, node);
}

}  // namespace

CUgraph* KeepBodies(CUgraph graph, CUgraphNode node, std::vector<CUgraph> bodies) {
  GraphBodies& all = TheBodies();
  base::MutexLock lock(all.mutex);
  for (CUgraph body : bodies) all.owner[body] = node;
  NodeBodies& kept = all.nodes[node];
  kept = {graph, std::move(bodies)};
  return kept.bodies.data();
}

std::vector<CUgraph> BodiesOf(CUgraphNode node) {
  GraphBodies& all = TheBodies();
  base::MutexLock lock(all.mutex);
  auto found = all.nodes.find(node);
  return found == all.nodes.end() ? std::vector<CUgraph>() : found->second.bodies;
}

bool IsBody(CUgraph graph) {
  GraphBodies& all = TheBodies();
  base::MutexLock lock(all.mutex);
  return all.owner.count(graph) != 0;
}

void ForgetBodies(CUgraphNode node) {
  GraphBodies& all = TheBodies();
  base::MutexLock lock(all.mutex);
  Forget(all, node);
}

void ForgetBodies(CUgraph graph) {
  GraphBodies& all = TheBodies();
  base::MutexLock lock(all.mutex);
  Forget(all, graph);
}

}  // namespace longwire::shim
