#include "client-shim/mirror/program_state.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/memory_sizes.h"
#include "client-shim/mirror/mirror_table.h"
#include "wire/guards.h"
#include "wire/limits.h"
#include "wire/live/mirror_state.h"
#include "wire/page_delta.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kPage = base::kPageBytes;
// Then pages are held.
constexpr int kCopies = 3;
// At most so much: a copy of it takes some milliseconds, in which all of it is away.
constexpr uint64_t kHeldBytes = uint64_t{16} << 20;

// Appends what has changed in a part of a mirror. False: it is more than a state may have.
bool AppendChanges(const MirrorPart& part, std::span<const std::byte> now, size_t* room,
                   std::vector<StateDelta>* deltas) {
  std::array<std::byte, wire::kDeltaPageBytes> shadow;
  bool begins = true;
  for (size_t at = 0; at < now.size();) {
    const uint64_t offset = part.offset + at;
    const size_t bytes = std::min<size_t>(kPage - offset % kPage, now.size() - at);
    if (std::memcmp(now.data() + at, part.mirror->shadow + offset, bytes) != 0) {
      if (begins || deltas->back().delta.size() >= wire::kDeltaBytes - wire::kMaxDeltaOfPage) {
        deltas->push_back({part.mirror, {}});
      }
      begins = false;
      std::copy_n(part.mirror->shadow + offset, bytes, shadow.begin());
      std::vector<std::byte>& delta = deltas->back().delta;
      const size_t before = delta.size();
      wire::AppendDelta(now.subspan(at, bytes), shadow.data(), offset, wire::PageForm::kChecked,
                        SIZE_MAX, &delta);
      if (delta.size() - before > *room) return false;
      *room -= delta.size() - before;
    }
    at += bytes;
  }
  return true;
}

struct PartCopy {
  std::byte* to = nullptr;
  uint64_t address = 0, bytes = 0;
};

struct PartCopies {
  size_t count = 0;
  PartCopy* copies = nullptr;
};

void CopyWhileHeld(const HeldView& held, void* own) {
  const auto& all = *static_cast<const PartCopies*>(own);
  for (size_t i = 0; i < all.count; ++i) {
    const PartCopy& copy = all.copies[i];
    for (uint64_t at = 0; at < copy.bytes;) {
      const uint64_t bytes = std::min(kPage - (copy.address + at) % kPage, copy.bytes - at);
      std::memcpy(copy.to + at, held.At(copy.address + at), bytes);
      at += bytes;
    }
  }
}

}  // namespace

std::vector<PageRange> RangesOf(std::span<const MirrorPart> parts) {
  std::vector<PageRange> ranges;
  for (const MirrorPart& part : parts) {
    const MirrorRange& range = part.mirror->range;
    ranges.push_back({range.address + part.offset, part.bytes, MayBeShared(range)});
  }
  return ranges;
}

ProgramState::Copied ProgramState::CopyAll(std::span<const MirrorPart> parts,
                                           std::vector<StateDelta>* deltas) {
  deltas->clear();
  size_t room = wire::kStateBytes;
  for (const std::vector<MirrorPart>& batch : BatchesOf(parts)) {
    if (!copy_.Make(batch)) return Copied::kUnreadable;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!AppendChanges(batch[i], copy_.ranges()[i].now, &room, deltas)) return Copied::kTooMuch;
    }
  }
  return Copied::kYes;
}

bool ProgramState::CopyHeld(std::span<const MirrorPart> parts) {
  uint64_t all = sizeof(PartCopies) + parts.size() * sizeof(PartCopy);
  for (const MirrorPart& part : parts) all += part.bytes;
  if (!held_.Reserve(all)) return false;
  auto* copies = new (held_.data()) PartCopies;
  copies->count = parts.size();
  copies->copies = reinterpret_cast<PartCopy*>(copies + 1);
  auto* to = reinterpret_cast<std::byte*>(copies->copies + parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    copies->copies[i] = {to, parts[i].mirror->range.address + parts[i].offset, parts[i].bytes};
    to += parts[i].bytes;
  }
  if (WhileHeld(RangesOf(parts), HeldFor::kReading, CopyWhileHeld, copies) != HoldResult::kDone) {
    return false;
  }
  deltas_.clear();
  size_t room = wire::kStateBytes;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::span<const std::byte> now(copies->copies[i].to, parts[i].bytes);
    if (!AppendChanges(parts[i], now, &room, &deltas_)) return false;
  }
  return true;
}

ProgramState::Taken ProgramState::Take(std::span<const MirrorPart> parts) {
  static const bool looks_again = !wire::GuardIsOff("state_copies");
  std::vector<StateDelta> later;
  for (int copies = 0; copies < kCopies; ++copies) {
    const Copied copied = CopyAll(parts, &later);
    if (copied == Copied::kUnreadable) return Taken::kUnreadable;
    if (copied == Copied::kTooMuch) return Taken::kNotNow;
    const bool same = (copies > 0 || !looks_again) && (later == deltas_ || !looks_again);
    deltas_.swap(later);
    if (same) return deltas_.empty() ? Taken::kSame : Taken::kState;
  }
  uint64_t bytes = 0;
  for (const MirrorPart& part : parts) bytes += part.bytes;
  if (bytes > kHeldBytes || !CopyHeld(parts)) return Taken::kNotNow;
  return deltas_.empty() ? Taken::kSame : Taken::kState;
}

void ProgramState::Commit() {
  std::vector<wire::DeltaRun> runs;
  for (const StateDelta& one : deltas_) {
    runs.clear();
    static_cast<void>(wire::ReadDelta(one.delta, one.mirror->reserved, &runs));  // our own
    for (const wire::DeltaRun& run : runs) {
      std::copy(run.bytes.begin(), run.bytes.end(), one.mirror->shadow + run.offset);
    }
  }
}

}  // namespace longwire::shim
