// Consecutive launches of a stream are decoded together and then given to the driver in one go. A
// driver call evicts our code and data from the first-level caches. Code between two driver calls
// therefore costs by the cache lines that it touches, there and in the next driver call
// (docs/decisions/0030).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "longwire/calls.h"
#include "server/worker/issue/launch_chains.h"

namespace longwire::worker {

class Gates;
class KernelStatistics;
class LoadedFunctions;
struct CountedKernel;

class LaunchRun {
 public:
  struct Uses {
    const DriverTable& driver;
    LoadedFunctions& functions;
    LaunchChains& chains;
    Gates& gates;
    KernelStatistics& statistics;
  };
  explicit LaunchRun(Uses uses) : uses_(uses) {}

  // Begins a run of at most `most` launches of this stream, up to this position. False if the
  // stream's launches cannot go in a run now. The stream outlives the run.
  bool Begin(const Stream& stream, uint64_t last_position, size_t most);
  // Adds the stream's next launch. False if it cannot be part of the run: it needs more than its
  // function, sizes and parameters, or comes after a position where a marker is wanted. It and the
  // calls behind it are then issued one by one, as other calls are.
  bool Add(uint64_t position, std::span<const std::byte> arguments);
  size_t size() const { return count_; }
  uint64_t position(size_t index) const { return launches_[index].position; }
  // The stream's next launch cannot be part of a run because it is to be timed.
  bool times_next() const { return times_next_; }

  // Launches them until one fails or the gate closes. Returns how many; `result` is the last one's.
  size_t Give(CUresult* result);

 private:
  static constexpr size_t kMaxLaunches = 64;
  static constexpr size_t kParameterBytes = 16 << 10;  // of all together

  CUresult LaunchAlone(const PlainLaunch& launch) const;
  // Notes whom the launch that was decoded counts for. False if it is to be timed.
  bool CountNext(const Function& function);

  Uses uses_;
  const Stream* stream_ = nullptr;
  uint64_t last_position_ = 0;
  size_t most_ = 0;
  calls::lwLaunch decoded_;  // a member, so that the memory of its lists is reused
  size_t count_ = 0;
  size_t used_bytes_ = 0;  // of the parameters
  bool counts_ = false;    // kernels are counted
  bool times_next_ = false;
  bool late_ = false;
  std::array<CountedKernel*, kMaxLaunches> kernels_{};  // of the launches, if they are counted
  std::array<PlainLaunch, kMaxLaunches> launches_{};
  alignas(16) std::array<std::byte, kParameterBytes> parameters_{};
};

}  // namespace longwire::worker
