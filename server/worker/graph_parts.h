// What a captured graph needs of the program: host memory that it copies from and to, and host
// functions. It belongs to every graph and executable that contains the captured nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "server/worker/driver.h"

namespace longwire::worker {

class Graphs;

// Pinned memory in the place of the program's, for one copy of the graph.
struct GraphCopy {
  uint64_t transfer = 0;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  CUgraphNode node = nullptr;
  bool by_host_node = false;  // moved around a host node, not before or after the whole launch
  std::atomic<uint64_t> received{0};  // bytes of the launch under way
};

// A host function in the graph. The bytes of copies that end before it must be in the program when
// it runs, and copies after it read what it wrote. Without ticket there is no function, only that.
struct GraphHostNode {
  Graphs* graphs = nullptr;
  uint64_t ticket = 0;
  CUgraphNode node = nullptr;
  std::vector<GraphCopy*> before;
  std::vector<GraphCopy*> after;
};

struct GraphPart {
  std::deque<GraphCopy> reads;   // host memory that the graph reads
  std::deque<GraphCopy> writes;  // host memory that the graph writes
  std::deque<GraphHostNode> hosts;
  std::vector<void*> memory;      // pinned, freed with this
  std::atomic<bool> busy{false};  // a launch has not finished or its bytes were not sent yet
  std::function<void(void*)> free;

  GraphPart() = default;
  GraphPart(const GraphPart&) = delete;
  GraphPart& operator=(const GraphPart&) = delete;
  ~GraphPart() {
    for (void* block : memory) free(block);
  }
  bool MovesBytes() const { return !reads.empty() || !writes.empty(); }
};

using GraphParts = std::vector<std::shared_ptr<GraphPart>>;

// Finds out, from the graph's edges, which copies are moved around which host nodes.
CUresult OrderAroundHostNodes(const DriverTable& driver, GraphPart& part);

}  // namespace longwire::worker
