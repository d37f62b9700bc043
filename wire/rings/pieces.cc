#include "wire/rings/pieces.h"

#include <algorithm>

#include "wire/limits.h"
#include "wire/switches.h"

namespace longwire::wire {
namespace {

constexpr size_t kSmallPiece = size_t{64} << 10;
constexpr size_t kLargerPiece = size_t{128} << 10;
constexpr uint64_t kLarger = uint64_t{512} << 10;  // copies from here on have the larger ones
constexpr uint64_t kLeastShare = uint64_t{256} << 10;
static_assert(kLargerPiece <= kCopyPieceBytes);

}  // namespace

bool MovesPieceByPiece() {
  static const bool on = !IsSwitchedOff("piece-by-piece");
  return on;
}

size_t LogPiece(uint64_t total) {
  if (!MovesPieceByPiece()) return kCopyPieceBytes;
  return total < kLarger ? kSmallPiece : kLargerPiece;
}

uint64_t LogShare(uint64_t bytes, uint64_t backlog) {
  static const bool off = IsSwitchedOff("log-beside-lanes");
  if (off || bytes > kBesideLanesBytes) return 0;
  const uint64_t room = kLogAheadBytes - std::min<uint64_t>(kLogAheadBytes, backlog);
  if (bytes <= room) return bytes;
  return room < kLeastShare ? 0 : room;
}

}  // namespace longwire::wire
