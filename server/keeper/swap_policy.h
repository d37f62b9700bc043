// Which memory to move out of the way of others, and what to bring back first. Numbers in, numbers
// out: no clock, thread, socket or CUDA. The keeper tells what happens and obeys.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace longwire::keeper {

// What a session has in one piece: a chunk.
struct Region {
  uint64_t id = 0;
  uint64_t owner = 0;  // the session's worker
  uint64_t bytes = 0;
};

class SwapPolicy {
 public:
  virtual ~SwapPolicy() = default;

  virtual void Added(const Region& region) = 0;
  // Work of the owner ran, or is waiting to.
  virtual void Accessed(uint64_t owner) = 0;
  virtual void Removed(uint64_t region) = 0;

  // Of what may be moved now: regions of at least `needed` bytes in all and at most `room`, in the
  // order in which they shall leave. None if there is no such choice: nothing is moved in vain.
  virtual std::vector<Region> Victims(uint64_t needed, uint64_t room,
                                      std::span<const Region> movable) = 0;
  // The owner is about to run: its regions that are away, in the order in which they shall come
  // back.
  virtual std::vector<Region> Prefetch(std::span<const Region> away) = 0;
};

// The owner whose last use is longest ago leaves first, and of its regions no more than needed.
std::unique_ptr<SwapPolicy> LeastRecentlyUsed();

}  // namespace longwire::keeper
