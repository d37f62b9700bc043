#include "client-shim/mirror/arrived_state.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "base/memory_sizes.h"
#include "client-shim/mirror/held_pages.h"
#include "client-shim/mirror/program_state.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/private_memory.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kNone = UINT64_MAX;

constexpr uint64_t kHeldPage = base::kPageBytes;
// Pages of a mirror that are near each other are held together; all of it, if there would be too
// many ranges (a process has 65,530 mappings).
constexpr uint64_t kHeldTogether = 16 * kHeldPage;
constexpr size_t kMaxHeldRanges = 4096;

// Changed bytes that follow each other, or those of a page that a mask names.
struct Change {
  uint64_t address = 0;
  std::byte* shadow = nullptr;
  const std::byte* is = nullptr;
  size_t bytes = 0;
  const std::byte* mask = nullptr;  // null: there is none
  size_t masked = 0;                // its bytes
  const Mirror* mirror = nullptr;
  bool may_conflict = false;

  uint64_t last() const { return address + std::max(bytes, 8 * masked) - 1; }
};

// What is used while the pages are held, all of it in private memory.
struct Changes {
  size_t count = 0;
  Change* changes = nullptr;
  uint64_t conflict = kNone;  // the first byte that the program has changed, too
};

// What the device had changed before it was sent to it, the shadow has already.
void Apply(const Change& change, std::byte* place, uint64_t* conflict) {
  if (std::memcmp(place, change.shadow, change.bytes) == 0) {
    std::memcpy(place, change.is, change.bytes);
    std::memcpy(change.shadow, change.is, change.bytes);
    return;
  }
  for (size_t i = 0; i < change.bytes; ++i) {
    if (change.shadow[i] == change.is[i]) continue;
    const bool both = place[i] != change.shadow[i] && place[i] != change.is[i];
    if (both && change.may_conflict && *conflict == kNone) *conflict = change.address + i;
    place[i] = change.shadow[i] = change.is[i];
  }
}

// Bytes that may lie in two pages.
void ApplyBytes(const HeldView& held, Change change, uint64_t* conflict) {
  while (change.bytes != 0) {
    Change part = change;
    part.bytes = std::min(change.bytes, kHeldPage - change.address % kHeldPage);
    Apply(part, held.At(part.address), conflict);
    change.address += part.bytes;
    change.shadow += part.bytes;
    change.is += part.bytes;
    change.bytes -= part.bytes;
  }
}

void ApplyMasked(const HeldView& held, const Change& change, uint64_t* conflict) {
  wire::DeltaRun page;
  page.bytes = {change.is, change.bytes};
  page.mask = {change.mask, change.masked};
  wire::EachMaskedWord(page, [&](const wire::MaskedWord& word) {
    for (size_t at = 0; at < 8;) {
      const auto bits = static_cast<unsigned>(word.bits) >> at;
      if (bits == 0) break;
      at += static_cast<size_t>(std::countr_zero(bits));
      const auto count =
          static_cast<size_t>(std::countr_one(static_cast<unsigned>(word.bits) >> at));
      Change bytes{change.address + word.at + at, change.shadow + word.at + at,
                   word.value.data() + at, count};
      bytes.may_conflict = change.may_conflict;
      ApplyBytes(held, bytes, conflict);
      at += count;
    }
  });
}

void ApplyWhileHeld(const HeldView& held, void* own) {
  auto& all = *static_cast<Changes*>(own);
  for (size_t i = 0; i < all.count; ++i) {
    const Change& change = all.changes[i];
    if (change.mask == nullptr) {
      ApplyBytes(held, change, &all.conflict);
    } else {
      ApplyMasked(held, change, &all.conflict);
    }
  }
}

// A list of changes, and the pages that have them.
class Plan {
 public:
  explicit Plan(Conflicts conflicts) : conflicts_(conflicts) {}
  // Bytes that the device has changed; they stay where they are until `Run`.
  void Add(const Mirror& mirror, uint64_t offset, std::span<const std::byte> is,
           std::span<const std::byte> mask = {}) {
    changes_.push_back({mirror.range.address + offset, mirror.shadow + offset, is.data(), is.size(),
                        mask.data(), mask.size(), &mirror,
                        conflicts_ == Conflicts::kAll || mirror.range.managed});
    bytes_ += is.size() + mask.size();
  }
  // kDone: *conflict is an address, or kNone.
  HoldResult Run(PrivateMemory& memory, uint64_t* conflict) {
    if (changes_.empty()) return HoldResult::kDone;
    if (!memory.Reserve(sizeof(Changes) + changes_.size() * sizeof(Change) + bytes_)) {
      return HoldResult::kNotNow;
    }
    auto* all = new (memory.data()) Changes;
    all->count = changes_.size();
    all->changes = reinterpret_cast<Change*>(all + 1);
    auto* bytes = reinterpret_cast<std::byte*>(all->changes + changes_.size());
    for (size_t i = 0; i < changes_.size(); ++i) {
      Change& change = all->changes[i] = changes_[i];
      bytes = std::copy_n(std::exchange(change.is, bytes), change.bytes, bytes);
      if (change.masked == 0) continue;
      bytes = std::copy_n(std::exchange(change.mask, bytes), change.masked, bytes);
    }
    std::vector<PageRange> ranges = Pages(kHeldTogether);
    if (ranges.size() > kMaxHeldRanges) ranges = Pages(UINT64_MAX / 2);
    const HoldResult held = WhileHeld(ranges, HeldFor::kWriting, ApplyWhileHeld, all);
    *conflict = all->conflict;
    return held;
  }

 private:
  std::vector<PageRange> Pages(uint64_t near) const {
    std::vector<PageRange> ranges;
    const Mirror* before = nullptr;
    for (const Change& change : changes_) {
      const uint64_t begin = base::RoundDown(change.address, kHeldPage);
      const uint64_t end = base::RoundDown(change.last(), kHeldPage) + kHeldPage;
      PageRange* last = ranges.empty() ? nullptr : &ranges.back();
      if (std::exchange(before, change.mirror) == change.mirror && begin >= last->address &&
          begin < last->address + last->bytes + near) {
        last->bytes = std::max(last->bytes, end - last->address);
      } else {
        ranges.push_back({begin, end - begin, MayBeShared(change.mirror->range)});
      }
    }
    return ranges;
  }

  const Conflicts conflicts_;
  std::vector<Change> changes_;
  size_t bytes_ = 0;
};

std::vector<Arrived> TakeArrived(Mirrors& mirrors) {
  base::MutexLock lock(mirrors.arrived_mutex);
  return std::exchange(mirrors.arrived, {});
}

void GiveBack(Mirrors& mirrors, std::vector<Arrived> arrived) {
  base::MutexLock lock(mirrors.arrived_mutex);
  std::ranges::move(mirrors.arrived, std::back_inserter(arrived));
  mirrors.arrived = std::move(arrived);
}

// A word's bytes that the device has not changed are the program's.
void AddWord(const Mirror& mirror, const wire::DeltaRun& word, Plan* plan) {
  for (size_t i = 0; i < word.bytes.size(); ++i) {
    if (word.was[i] != word.bytes[i]) plan->Add(mirror, word.offset + i, word.bytes.subspan(i, 1));
  }
}

// What has come. Words alone, and what cannot be read, are applied as at a border, where faults are
// found. Memory in files cannot be held.
struct Contents {
  enum class Kind { kWords, kState, kCannot };
  explicit Contents(Conflicts conflicts) : plan(conflicts) {}
  Plan plan;
  Kind kind = Kind::kWords;
  bool in_file = false;
  uint64_t conflict = kNone;
};

void Read(Mirrors& mirrors, const std::vector<Arrived>& arrived, Contents* contents)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  using Kind = Contents::Kind;
  std::vector<wire::DeltaRun> runs;
  const std::map<uint64_t, Mirror*> by_id = MirrorsById(mirrors);
  for (const Arrived& one : arrived) {
    const auto found = by_id.find(one.mirror);
    if (one.delta.empty() || found == by_id.end() || !IsThere(*found->second)) continue;
    const Mirror* mirror = found->second;
    runs.clear();
    if (wire::ReadDelta(one.delta, mirror->reserved, &runs, wire::MaskedAs::kPages) !=
        wire::WireResult::kOk) {
      contents->kind = Kind::kWords;
      return;
    }
    contents->in_file |= mirror->range.may_shrink;
    for (const wire::DeltaRun& run : runs) {
      if (run.form == wire::PageForm::kConflict) {
        contents->conflict = mirror->range.address + run.offset;
      } else if (run.form == wire::PageForm::kWord) {
        AddWord(*mirror, run, &contents->plan);
      } else {
        contents->kind = Kind::kState;
        contents->plan.Add(*mirror, run.offset, run.bytes, run.mask);
      }
    }
  }
  if (contents->kind == Kind::kState && contents->in_file) contents->kind = Kind::kCannot;
}

void ReportAt(Mirrors& mirrors, uint64_t address) LONGWIRE_REQUIRES(mirrors.mutex) {
  auto after = mirrors.by_address.upper_bound(address);
  if (address == kNone || after == mirrors.by_address.begin()) return;
  const Mirror& mirror = *std::prev(after)->second;
  ReportConflict(mirror, address - mirror.range.address);
}

}  // namespace

bool ApplyArrivedAsState(Mirrors& mirrors, Conflicts conflicts) {
  static NeverDestroyed<PrivateMemory> memory;  // the lock guards it
  std::vector<Arrived> arrived = TakeArrived(mirrors);
  Contents contents(conflicts);
  Read(mirrors, arrived, &contents);
  if (contents.kind == Contents::Kind::kWords) {
    GiveBack(mirrors, std::move(arrived));
    ApplyArrived(mirrors);
    return true;
  }
  uint64_t conflict = kNone;
  if (contents.kind == Contents::Kind::kCannot ||
      contents.plan.Run(*memory, &conflict) != HoldResult::kDone) {
    GiveBack(mirrors, std::move(arrived));
    return false;
  }
  ReportAt(mirrors, contents.conflict);
  ReportAt(mirrors, conflict);
  for (const Arrived& one : arrived) {
    if (one.delta.empty()) {
      mirrors.answered.insert(one.mirror);
    } else {
      ++mirrors.applied;
    }
  }
  return true;
}

}  // namespace longwire::shim
