#include "server/worker/transfer/in_flight.h"

#include <algorithm>

#include "wire/guards.h"
#include "wire/limits.h"

namespace longwire::worker {

namespace {

// As many streams can be full at once before the log stands still.
constexpr uint64_t kFullStreams = 16;
// Of the window: the other pieces of a copy are at most a quarter of it each.
constexpr uint64_t kHeldShare = 8;
// About 1,500 launches; natively about 1,000 are queued before a launch waits.
constexpr uint64_t kLeastStreamBytes = uint64_t{256} << 10;

}  // namespace

uint64_t InFlightLimits::held_credit() const {
  const uint64_t piece = std::min<uint64_t>(window, wire::kCopyPieceBytes);
  return std::min(window / kHeldShare, window - piece);
}

InFlightLimits InFlightLimits::Of(uint64_t bytes) {
  if (wire::GuardIsOff("quota_bytes")) {
    return {UINT64_MAX, UINT64_MAX, wire::kUploadWindowBytes, UINT64_MAX};
  }
  // The window has to hold a piece of a copy.
  bytes = std::max<uint64_t>(bytes, 4 * wire::kCopyPieceBytes);
  uint64_t uploads = bytes / 2;
  uint64_t calls = bytes - uploads;
  return {calls, uploads, std::min<uint64_t>(wire::kUploadWindowBytes, uploads / 2),
          std::max(calls / kFullStreams, kLeastStreamBytes)};
}

InFlightLimits InFlightLimits::Of(gates::GatePage* page) {
  uint64_t bytes = page == nullptr ? 0 : page->bytes_in_flight().load();
  return Of(bytes == 0 ? kDefaultBytes : bytes);
}

}  // namespace longwire::worker
