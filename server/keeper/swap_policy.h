// Chooses which memory to swap out, and what to swap in first. Pure computation: no clock, thread,
// socket or CUDA. The keeper reports events and carries out the choices.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace longwire::keeper {

// A session's chunk.
struct Region {
  uint64_t id = 0;
  uint64_t owner = 0;  // the session's worker
  uint64_t bytes = 0;
};

// Kernels that are next in a session's log when its memory is wanted back.
struct NextLaunches {
  uint32_t count = 0;
  std::array<uint64_t, 4> kernels{};  // numbers of the names of the first ones; 0: none
};

class SwapPolicy {
 public:
  virtual ~SwapPolicy() = default;

  virtual void Added(const Region& region) = 0;
  // The owner's work ran, or waits to run.
  virtual void Accessed(uint64_t owner) = 0;
  virtual void Removed(uint64_t region) = 0;
  // The owner has work and waits for `away` bytes of its memory: for how long it stays at least
  // once it is back, if that is longer than for others.
  virtual std::chrono::nanoseconds Runs(uint64_t, uint64_t, const NextLaunches&) {
    return std::chrono::nanoseconds(0);
  }

  // Chooses from `movable` regions of at least `needed` and at most `room` bytes in all, in the
  // order in which to swap them out. Empty if that is impossible: nothing is swapped out in vain.
  virtual std::vector<Region> Victims(uint64_t needed, uint64_t room,
                                      std::span<const Region> movable) = 0;
  // The owner is about to run: its swapped regions in the order in which to swap them in.
  virtual std::vector<Region> Prefetch(std::span<const Region> away) = 0;
};

// Swaps out the least recently used owner first, and no more of its regions than needed.
std::unique_ptr<SwapPolicy> LeastRecentlyUsed();

}  // namespace longwire::keeper
