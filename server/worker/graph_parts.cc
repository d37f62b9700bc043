#include "server/worker/graph_parts.h"

#include <algorithm>
#include <unordered_set>

namespace longwire::worker {
namespace {

// Calls visit for `start`'s ancestors; where it returns true the walk goes no further up.
template <class Visit>
CUresult WalkUp(const DriverTable& driver, CUgraphNode start, Visit visit) {
  std::vector<CUgraphNode> open = {start};
  std::unordered_set<CUgraphNode> seen;
  while (!open.empty()) {
    CUgraphNode node = open.back();
    open.pop_back();
    size_t count = 0;
    CUresult result = driver.cuGraphNodeGetDependencies_v2(node, nullptr, nullptr, &count);
    if (result != CUDA_SUCCESS) return result;
    std::vector<CUgraphNode> before(count);
    std::vector<CUgraphEdgeData> edges(count);
    if (count != 0) {
      result = driver.cuGraphNodeGetDependencies_v2(node, before.data(), edges.data(), &count);
    }
    if (result != CUDA_SUCCESS) return result;
    for (CUgraphNode each : before) {
      if (each != nullptr && seen.insert(each).second && !visit(each)) open.push_back(each);
    }
  }
  return CUDA_SUCCESS;
}

template <class List>
auto FindNode(List& list, CUgraphNode node) {
  return std::find_if(list.begin(), list.end(),
                      [&](const auto& each) { return each.node == node; });
}

}  // namespace

CUresult OrderAroundHostNodes(const DriverTable& driver, GraphPart& part) {
  // Each walk ends at the next host node: what lies above that one is its own business.
  for (GraphHostNode& host : part.hosts) {
    CUresult result = WalkUp(driver, host.node, [&](CUgraphNode node) {
      auto write = FindNode(part.writes, node);
      if (write != part.writes.end()) {
        host.before.push_back(&*write);
        write->by_host_node = true;
      }
      return FindNode(part.hosts, node) != part.hosts.end();
    });
    if (result != CUDA_SUCCESS) return result;
  }
  if (part.hosts.empty()) return CUDA_SUCCESS;
  for (GraphCopy& read : part.reads) {
    CUresult result = WalkUp(driver, read.node, [&](CUgraphNode node) {
      auto host = FindNode(part.hosts, node);
      if (host == part.hosts.end()) return false;
      host->after.push_back(&read);
      read.by_host_node = true;
      return true;
    });
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
