#include "client-shim/slots.h"

#include "client-shim/options.h"
#include "client-shim/pinned_segment.h"
#include "client-shim/threads.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

// Pinning takes milliseconds: a program with none but smaller copies has nothing of it.
constexpr uint64_t kWorthIt = uint64_t{8} << 20;

constexpr uint32_t kCount = wire::kSlotsBytes / wire::kSlotBytes;

}  // namespace

bool Slots::Open(uint64_t copy_bytes) {
  if (open_.load(std::memory_order_acquire)) return true;
  if (copy_bytes < kWorthIt || tried_.exchange(true)) return false;
  if (ProcessOptions().Disabled("staged-copies")) return false;
  StartThread(
      "longwire-slots", [](void* self) { static_cast<Slots*>(self)->Make(); }, this);
  return false;
}

void Slots::Make() {
  part_ = TakePart(wire::kSlotsBytes);
  if (part_ == kNoPart) return;
  data_ = MapPart(part_, wire::kSlotsBytes);
  if (data_ == nullptr) {
    GivePart(part_, wire::kSlotsBytes);
    return;
  }
  for (uint32_t i = 0; i < kCount; ++i) free_.push_back(i);
  taken_.resize(kCount);
  open_.store(true, std::memory_order_release);
}

bool Slots::Take(Slot* slot) {
  std::lock_guard<std::mutex> lock(mutex_);
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
  std::lock_guard<std::mutex> lock(mutex_);
  bool known = (offset - part_) % wire::kSlotBytes == 0 && number < kCount && taken_[number];
  if (!known) return false;
  taken_[number] = false;
  free_.push_back(static_cast<uint32_t>(number));
  return true;
}

}  // namespace longwire::shim
