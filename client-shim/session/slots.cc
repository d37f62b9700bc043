#include "client-shim/session/slots.h"

#include <chrono>

#include "client-shim/session/pinned_segment.h"
#include "client-shim/support/threads.h"
#include "wire/limits.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

// Pinning takes milliseconds: a program with none but smaller copies has nothing of it.
constexpr uint64_t kWorthIt = uint64_t{8} << 20;

// From here on the rings take longer than pinning and the slots together. But not without end: the
// driver may pin only when the device's work is over.
constexpr uint64_t kWorthWaiting = uint64_t{64} << 20;
constexpr std::chrono::milliseconds kPatience{50};

constexpr uint32_t kCount = wire::kSlotsBytes / wire::kSlotBytes;

}  // namespace

bool Slots::Open(uint64_t copy_bytes) {
  if (open_.load(std::memory_order_acquire)) return true;
  if (copy_bytes < kWorthIt || tried_.exchange(true)) return false;
  if (wire::IsSwitchedOff("staged-copies")) return false;
  bool makes = StartThread(
      "longwire-slots", [](void* self) { static_cast<Slots*>(self)->Make(); }, this);
  if (!makes || copy_bytes < kWorthWaiting) return false;
  base::MutexLock lock(mutex_);
  auto until = std::chrono::steady_clock::now() + kPatience;
  while (!made_ && made_changed_.WaitUntil(lock, until)) {
  }
  return open_.load(std::memory_order_acquire);
}

void Slots::Make() {
  bool pinned = Pin();
  base::MutexLock lock(mutex_);
  made_ = true;
  made_changed_.NotifyAll();
  if (!pinned) return;
  for (uint32_t i = 0; i < kCount; ++i) free_.push_back(i);
  taken_.resize(kCount);
  open_.store(true, std::memory_order_release);
}

bool Slots::Pin() {
  part_ = TakePart(wire::kSlotsBytes);
  if (part_ == kNoPart) return false;
  data_ = MapPart(part_, wire::kSlotsBytes);
  if (data_ == nullptr) GivePart(part_, wire::kSlotsBytes);
  return data_ != nullptr;
}

bool Slots::Take(Slot* slot) {
  base::MutexLock lock(mutex_);
  if (free_.empty()) return false;
  uint32_t number = free_.back();
  free_.pop_back();
  taken_[number] = true;
  *slot = {data_ + number * wire::kSlotBytes, part_ + number * wire::kSlotBytes};
  return true;
}

bool Slots::Give(uint64_t offset) {
  if (!open_.load(std::memory_order_acquire) || offset < part_) return false;
  uint64_t number = (offset - part_) / wire::kSlotBytes;
  base::MutexLock lock(mutex_);
  bool known = (offset - part_) % wire::kSlotBytes == 0 && number < kCount && taken_[number];
  if (!known) return false;
  taken_[number] = false;
  free_.push_back(static_cast<uint32_t>(number));
  given_.fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace longwire::shim
