// Handles the shim gives out: numbers, not addresses, so that a wrong or stale one is recognised
// instead of dereferenced. A handle names a slot and the slot's generation; the objects' memory is
// type-stable (recycled, never returned), so a program that destroys what another of its threads
// still uses gets a wrong answer at worst, as from any driver, and no crash in here.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::shim {

// What a handle is of; part of its value. Values stay below the lowest window (0x200000000000).
enum class HandleKind : uint64_t {
  kContext = 1,
  kStream = 2,
  kEvent = 3,
  kModule = 4,
  kLibrary = 5,
  kFunction = 6,
  kKernel = 7,
  kGraph = 8,
  kGraphExec = 9,
  kMemoryPool = 10,
  kLink = 11,
  kReference = 12,
  kGreenContext = 13,
  kExternalMemory = 14,
  kNotification = 15,
};

template <class T, HandleKind kind, uint64_t slot_bits = 24>
class HandleTable {
 public:
  static constexpr uint64_t kSlotBits = slot_bits, kGenerationBits = 12, kLowBits = 4;
  static constexpr uint64_t kMaxSlots = uint64_t{1} << kSlotBits;
  static constexpr size_t kReuseDelay = 256;  // slots that rest before they are used again

  // A fresh object in a slot of its own, not yet findable; nullptr when the table is full. Nothing
  // of the object that was there before is left.
  T* New() {
    base::MutexLock lock(mutex_);
    uint64_t index;
    bool used_before = free_.size() > kReuseDelay;
    if (used_before) {
      index = free_.front();
      free_.pop_front();
    } else {
      if (count_ == kMaxSlots) return nullptr;
      index = count_++;
      if (chunks_[index >> kChunkBits].load(std::memory_order_relaxed) == nullptr) {
        chunks_[index >> kChunkBits].store(new Slot[kChunk], std::memory_order_release);
      }
    }
    Slot& slot = chunks_[index >> kChunkBits].load(std::memory_order_relaxed)[index & (kChunk - 1)];
    if (used_before) {
      std::destroy_at(&slot.object);
      std::construct_at(&slot.object);
    }
    slot.object.table_index = index;
    return &slot.object;
  }
  // Makes the object findable and returns its handle.
  uint64_t Publish(T* object) {
    Slot& slot = SlotOf(object->table_index);
    uint32_t generation = slot.generation.load(std::memory_order_relaxed) + 1;  // odd: live
    slot.generation.store(generation, std::memory_order_release);
    return Value(object->table_index, generation);
  }
  // The object of a live handle, else nullptr.
  T* Find(uint64_t handle) const {
    if ((handle >> (kLowBits + kSlotBits + kGenerationBits)) != static_cast<uint64_t>(kind) ||
        (handle & ((1 << kLowBits) - 1)) != 0) {
      return nullptr;
    }
    uint64_t index = (handle >> kLowBits) & (kMaxSlots - 1);
    Slot* chunk = chunks_[index >> kChunkBits].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    Slot& slot = chunk[index & (kChunk - 1)];
    uint32_t generation = slot.generation.load(std::memory_order_acquire);
    if ((generation & 1) == 0 || Value(index, generation) != handle) return nullptr;
    return &slot.object;
  }
  // The handle stops being valid; false if somebody else already did this.
  bool Retire(T* object) {
    Slot& slot = SlotOf(object->table_index);
    uint32_t generation = slot.generation.load(std::memory_order_relaxed);
    return (generation & 1) != 0 &&
           slot.generation.compare_exchange_strong(generation, generation + 1);
  }
  // Gives the slot of a retired object back. The object is there until the slot is used again; the
  // caller lets go what others wait for.
  void Recycle(T* object) {
    base::MutexLock lock(mutex_);
    free_.push_back(object->table_index);
  }

 private:
  static constexpr uint64_t kChunkBits = 10, kChunk = 1 << kChunkBits;

  struct Slot {
    std::atomic<uint32_t> generation{0};
    T object;
  };
  static uint64_t Value(uint64_t index, uint64_t generation) {
    uint64_t masked = (generation >> 1) & ((1 << kGenerationBits) - 1);
    return static_cast<uint64_t>(kind) << (kLowBits + kSlotBits + kGenerationBits) |
           masked << (kLowBits + kSlotBits) | index << kLowBits;
  }
  Slot& SlotOf(uint64_t index) const {
    return chunks_[index >> kChunkBits].load(std::memory_order_acquire)[index & (kChunk - 1)];
  }

  base::Mutex mutex_{base::ranks::kHandleTable};
  uint64_t count_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  std::deque<uint64_t> free_ LONGWIRE_GUARDED_BY(mutex_);
  std::atomic<Slot*> chunks_[kMaxSlots >> kChunkBits] = {};
};

}  // namespace longwire::shim
