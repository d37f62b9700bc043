// Parts: objects of the program that a graph's node uses, which are memory for a copy, a host
// function or an event. A part belongs to every graph and executable that contains the node or a
// copy of it. When the last of them is destroyed, the part is, too, and the client is notified.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "longwire/calls.h"
#include "server/worker/support/driver.h"
#include "server/worker/transfer/transfers.h"

namespace longwire::worker {

class DownWriter;
class GraphPartStore;
class Helpers;
struct FixedEvent;
struct GraphPlan;

// Pinned memory that stands for the program's memory. Copies of one graph that use the same memory
// of the program share it, so that one reads what the other wrote.
struct PinnedBlock {
  std::shared_ptr<GraphPartStore> store;
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::atomic<bool> busy{false};  // a launch has not finished, or its bytes are not sent yet
  ~PinnedBlock();
};

// One side of a copy; `received` counts for the current launch.
struct GraphCopy : TransferTarget {
  uint64_t transfer = 0;  // 0: this side is not the program's memory
  uint64_t first = 0;     // address of the program's memory
  uint64_t span = 0;      // bytes from its first to its last byte; 0: not known where (captured)
  std::shared_ptr<PinnedBlock> block;

  bool MayOverlap(const GraphCopy& other) const {
    if (span == 0 || other.span == 0) return true;
    return first < other.first + other.span && other.first < first + span;
  }
};

struct GraphPart {
  std::shared_ptr<GraphPartStore> store;

  // A copy: its read and its write of the program's memory, and both sides as the call has them.
  GraphCopy read, write;
  calls::MemcpyNode copy;

  // A host function. Without a ticket there is none: only bytes are exchanged.
  bool is_host = false;
  uint64_t number = 0;  // by which the driver knows it (host_nodes.h)
  uint64_t ticket = 0;
  std::atomic<bool> busy{false};
  std::shared_ptr<const GraphPlan> running;  // guarded by Graphs' lock

  // An event that the node records or waits for.
  std::shared_ptr<FixedEvent> event;
  bool waits = false;

  GraphPart() = default;
  GraphPart(const GraphPart&) = delete;
  GraphPart& operator=(const GraphPart&) = delete;
  ~GraphPart();
};

using GraphPartRef = std::shared_ptr<GraphPart>;

// The existing parts of a session, and their pinned memory.
class GraphPartStore : public std::enable_shared_from_this<GraphPartStore> {
 public:
  // Freeing may wait for the device, so some blocks are kept for nodes that change often.
  static constexpr uint64_t kMaxKeptBytes = uint64_t{64} << 20;

  struct Uses {
    const DriverTable& driver;
    DownWriter& down;
    Transfers& transfers;
    Helpers& helpers;
    HostMemory& host_memory;
  };
  explicit GraphPartStore(Uses uses) : uses_(uses) {}

  CUresult Allocate(uint64_t bytes, std::shared_ptr<PinnedBlock>* block);
  GraphPartRef NewPart();
  // Registers the part: bytes of its transfers are stored in it from now on.
  void Announce(const GraphPartRef& part);
  // Finds a node's part by the node's parameters as the driver returns them. Several may share
  // memory: then it is the one that goes to, or comes from, the same place of the device.
  GraphPartRef FindCopy(const void* source, const void* destination, uint64_t bytes);
  bool empty() const { return alive_ == 0; }
  // The session ends: parts are neither reported nor freed any more.
  void Close();

 private:
  friend struct PinnedBlock;
  friend struct GraphPart;
  void Give(std::byte* data, uint64_t bytes);
  void Gone(GraphPart& part);

  Uses uses_;
  base::Mutex mutex_{base::ranks::kGraphPartStore};
  bool closed_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::multimap<uint64_t, std::byte*> kept_ LONGWIRE_GUARDED_BY(mutex_);  // by size
  uint64_t kept_bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  // By the address of the memory that is read, or else written.
  std::multimap<const void*, std::weak_ptr<GraphPart>> by_memory_ LONGWIRE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> alive_{0};
};

}  // namespace longwire::worker
