// Launches that stand one behind the other in a stream: they are decoded together and then given to
// the driver in one go. The driver leaves nothing of our code and data in the nearest caches, so
// what lies between two of its calls costs by the lines that it touches, there and in the driver's
// next call (docs/decisions/0030).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "longwire/calls.h"
#include "server/worker/issue/launch_chains.h"

namespace longwire::worker {

class Gates;
class LoadedFunctions;

class LaunchRun {
 public:
  struct Uses {
    const DriverTable& driver;
    LoadedFunctions& functions;
    LaunchChains& chains;
    Gates& gates;
  };
  explicit LaunchRun(Uses uses) : uses_(uses) {}

  // Launches of this stream are to be added, up to this position, and `most` at most. False if the
  // stream takes none this way now. It outlives the run.
  bool Begin(const Stream& stream, uint64_t last_position, size_t most);
  // The stream's next launch. False if it does not go with the others: it needs more than its
  // function, sizes and parameters, or stands behind a place where a marker is wanted. Then the way
  // of all calls is for it, and for what stands behind it.
  bool Add(uint64_t position, std::span<const std::byte> arguments);
  size_t size() const { return count_; }
  uint64_t position(size_t index) const { return launches_[index].position; }

  // Gives them to the driver until one fails or the gate closes; `result`: the last one's.
  size_t Give(CUresult* result);

 private:
  static constexpr size_t kMaxLaunches = 64;
  static constexpr size_t kParameterBytes = 16 << 10;  // of all together

  CUresult LaunchAlone(const PlainLaunch& launch) const;

  Uses uses_;
  const Stream* stream_ = nullptr;
  uint64_t last_position_ = 0;
  size_t most_ = 0;
  calls::lwLaunch decoded_;  // kept: its lists have no memory of their own mostly
  size_t count_ = 0;
  size_t used_bytes_ = 0;  // of the parameters
  std::array<PlainLaunch, kMaxLaunches> launches_{};
  alignas(16) std::array<std::byte, kParameterBytes> parameters_{};
};

}  // namespace longwire::worker
