#include "server/worker/graph/conditionals.h"

#include <algorithm>

#include "wire/guards.h"

namespace longwire::worker {

bool Conditionals::Add(CUgraphConditionalHandle condition, CUgraph graph) {
  base::MutexLock lock(mutex_);
  if (conditions_.size() >= kMaxConditions) return false;
  conditions_[condition] = graph;
  return true;
}

bool Conditionals::Knows(CUgraphConditionalHandle condition) const {
  static const bool checks = !wire::GuardIsOff("handles");
  base::MutexLock lock(mutex_);
  return !checks || conditions_.contains(condition);
}

void Conditionals::AddNode(CUgraphNode node, std::vector<CUgraph> bodies) {
  base::MutexLock lock(mutex_);
  bodies_[node] = std::move(bodies);
}

std::vector<CUgraph> Conditionals::BodiesOf(CUgraphNode node) const {
  base::MutexLock lock(mutex_);
  auto found = bodies_.find(node);
  return found == bodies_.end() ? std::vector<CUgraph>() : found->second;
}

bool Conditionals::IsBody(CUgraph graph) const {
  base::MutexLock lock(mutex_);
  return std::any_of(bodies_.begin(), bodies_.end(), [graph](const auto& entry) {
    return std::find(entry.second.begin(), entry.second.end(), graph) != entry.second.end();
  });
}

void Conditionals::ForgetNode(CUgraphNode node) {
  base::MutexLock lock(mutex_);
  bodies_.erase(node);
}

void Conditionals::ForgetGraph(CUgraph graph) {
  base::MutexLock lock(mutex_);
  std::erase_if(conditions_, [graph](const auto& entry) { return entry.second == graph; });
}

}  // namespace longwire::worker
