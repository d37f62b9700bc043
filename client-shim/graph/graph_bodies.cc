#include "client-shim/graph/graph_bodies.h"

#include <mutex>
#include <unordered_map>

#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct NodeBodies {
  CUgraph graph = nullptr;  // that has the node
  std::vector<CUgraph> bodies;
};

struct Tables {
  std::mutex mutex;
  std::unordered_map<CUgraphNode, NodeBodies> nodes;
  std::unordered_map<CUgraph, CUgraphNode> owner;  // by body
};

Tables& TheTables() {
  static NeverDestroyed<Tables> tables;
  return *tables;
}

void Forget(Tables& tables, CUgraph graph);

// With what the bodies' own nodes have.
void Forget(Tables& tables, CUgraphNode node) {
  auto taken = tables.nodes.extract(node);
  if (taken.empty()) return;
  for (CUgraph body : taken.mapped().bodies) {
    tables.owner.erase(body);
    Forget(tables, body);
  }
}

void Forget(Tables& tables, CUgraph graph) {
  std::vector<CUgraphNode> gone;
  for (auto& [node, bodies] : tables.nodes) {
    if (bodies.graph == graph) gone.push_back(node);
  }
  for (CUgraphNode node : gone) Forget(tables, node);
}

}  // namespace

CUgraph* KeepBodies(CUgraph graph, CUgraphNode node, std::vector<CUgraph> bodies) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  for (CUgraph body : bodies) tables.owner[body] = node;
  NodeBodies& kept = tables.nodes[node];
  kept = {graph, std::move(bodies)};
  return kept.bodies.data();
}

std::vector<CUgraph> BodiesOf(CUgraphNode node) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  auto found = tables.nodes.find(node);
  return found == tables.nodes.end() ? std::vector<CUgraph>() : found->second.bodies;
}

bool IsBody(CUgraph graph) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  return tables.owner.count(graph) != 0;
}

void ForgetBodies(CUgraphNode node) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  Forget(tables, node);
}

void ForgetBodies(CUgraph graph) {
  Tables& tables = TheTables();
  std::lock_guard<std::mutex> lock(tables.mutex);
  Forget(tables, graph);
}

}  // namespace longwire::shim
