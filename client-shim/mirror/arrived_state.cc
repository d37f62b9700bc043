#include "client-shim/mirror/arrived_state.h"

#include <algorithm>
#include <cstring>
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

// Changed bytes within a page of the program's.
struct Change {
  uint64_t address = 0;
  std::byte* shadow = nullptr;
  const std::byte* is = nullptr;
  size_t bytes = 0;
  const Mirror* mirror = nullptr;
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
    if (both && *conflict == kNone) *conflict = change.address + i;
    place[i] = change.shadow[i] = change.is[i];
  }
}

void ApplyWhileHeld(const HeldView& held, void* own) {
  auto& all = *static_cast<Changes*>(own);
  for (size_t i = 0; i < all.count; ++i) {
    const Change& change = all.changes[i];
    Apply(change, held.At(change.address), &all.conflict);
  }
}

// A list of changes, and the pages that have them.
class Plan {
 public:
  // Bytes that the device has changed; they stay where they are until `Run`.
  void Add(const Mirror& mirror, uint64_t offset, std::span<const std::byte> is) {
    uint64_t address = mirror.range.address + offset;
    std::byte* shadow = mirror.shadow + offset;
    while (!is.empty()) {
      const size_t bytes = std::min(is.size(), base::kPageBytes - address % base::kPageBytes);
      changes_.push_back({address, shadow, is.data(), bytes, &mirror});
      bytes_ += bytes;
      address += bytes;
      shadow += bytes;
      is = is.subspan(bytes);
    }
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
    std::vector<PageRange> ranges;
    const Mirror* before = nullptr;
    for (size_t i = 0; i < changes_.size(); ++i) {
      const Change& change = changes_[i];
      all->changes[i] = change;
      all->changes[i].is = bytes;
      bytes = std::copy_n(change.is, change.bytes, bytes);
      AddPage(change, std::exchange(before, change.mirror) == change.mirror, &ranges);
    }
    const HoldResult held = WhileHeld(ranges, HeldFor::kWriting, ApplyWhileHeld, all);
    *conflict = all->conflict;
    return held;
  }

 private:
  // Pages of a mirror that are near each other are held together.
  static void AddPage(const Change& change, bool same_mirror, std::vector<PageRange>* ranges) {
    constexpr uint64_t kNear = 16 * base::kPageBytes;
    const uint64_t page = change.address - change.address % base::kPageBytes;
    if (same_mirror) {
      PageRange& last = ranges->back();
      const uint64_t end = last.address + last.bytes;
      if (page >= last.address && page < end + kNear) {
        last.bytes = std::max(end, page + base::kPageBytes) - last.address;
        return;
      }
    }
    ranges->push_back({page, base::kPageBytes, MayBeShared(change.mirror->range)});
  }

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

Mirror* FindById(Mirrors& mirrors, uint64_t id) LONGWIRE_REQUIRES(mirrors.mutex) {
  for (auto& [address, mirror] : mirrors.by_address) {
    if (mirror->id == id) return IsThere(*mirror) ? mirror.get() : nullptr;
  }
  return nullptr;
}

// A word's bytes that the device has not changed are the program's.
void AddWord(const Mirror& mirror, const wire::DeltaRun& word, Plan* plan) {
  for (size_t i = 0; i < word.bytes.size(); ++i) {
    if (word.was[i] != word.bytes[i]) plan->Add(mirror, word.offset + i, word.bytes.subspan(i, 1));
  }
}

// What has come.
struct Contents {
  Plan plan;
  bool is_state = false;  // else there are but words
  uint64_t conflict = kNone;
};

// False: it is applied as at a border, where faults are found.
bool Read(Mirrors& mirrors, const std::vector<Arrived>& arrived, Contents* contents)
    LONGWIRE_REQUIRES(mirrors.mutex) {
  std::vector<wire::DeltaRun> runs;
  for (const Arrived& one : arrived) {
    Mirror* mirror = FindById(mirrors, one.mirror);
    if (one.delta.empty() || mirror == nullptr) continue;
    runs.clear();
    if (wire::ReadDelta(one.delta, mirror->reserved, &runs) != wire::WireResult::kOk) return false;
    if (mirror->range.may_shrink) return false;
    for (const wire::DeltaRun& run : runs) {
      if (run.form == wire::PageForm::kConflict) {
        contents->conflict = mirror->range.address + run.offset;
      } else if (run.form == wire::PageForm::kWord) {
        AddWord(*mirror, run, &contents->plan);
      } else {
        contents->is_state = true;
        contents->plan.Add(*mirror, run.offset, run.bytes);
      }
    }
  }
  return contents->is_state;
}

void ReportAt(Mirrors& mirrors, uint64_t address) LONGWIRE_REQUIRES(mirrors.mutex) {
  auto after = mirrors.by_address.upper_bound(address);
  if (address == kNone || after == mirrors.by_address.begin()) return;
  const Mirror& mirror = *std::prev(after)->second;
  ReportConflict(mirror, address - mirror.range.address);
}

}  // namespace

bool ApplyArrivedAsState(Mirrors& mirrors) {
  static NeverDestroyed<PrivateMemory> memory;  // the lock guards it
  std::vector<Arrived> arrived = TakeArrived(mirrors);
  Contents contents;
  if (!Read(mirrors, arrived, &contents)) {
    GiveBack(mirrors, std::move(arrived));
    ApplyArrived(mirrors);
    return true;
  }
  uint64_t conflict = kNone;
  if (contents.plan.Run(*memory, &conflict) != HoldResult::kDone) {
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
