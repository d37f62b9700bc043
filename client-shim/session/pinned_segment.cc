#include "client-shim/session/pinned_segment.h"

#include <sys/mman.h>

#include <atomic>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "mempool/free_ranges.h"
#include "wire/descriptors.h"
#include "wire/rings/segment.h"

namespace longwire::shim {
namespace {

struct PinnedSegment {
  wire::OwnDescriptor file;  // written before the session starts, as the next two
  uint64_t bytes = 0;
  uint64_t base = 0;
  std::atomic<int> live{0};
  base::Mutex mutex{base::ranks::kPinnedSegment};
  mempool::FreeRanges free LONGWIRE_GUARDED_BY(mutex);  // offsets
};

PinnedSegment& TheSegment() {
  static NeverDestroyed<PinnedSegment> segment;
  return *segment;
}

void AddFree(uint64_t offset, uint64_t bytes) {
  PinnedSegment& segment = TheSegment();
  base::MutexLock lock(segment.mutex);
  segment.free.Add(offset, bytes);
}

std::byte* Map(uint64_t offset, uint64_t bytes, void* address, int fixed) {
  int file = TheSegment().file.get();
  if (file < 0) return nullptr;
  // The pages exist: pinning made them.
  void* mapped = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | fixed,
                      file, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

}  // namespace

bool AdoptSegment(wire::Descriptor file, uint64_t bytes, uint64_t base) {
  if (!wire::IsSegment(file.get(), bytes)) return false;
  PinnedSegment& segment = TheSegment();
  segment.file = wire::OwnDescriptor(std::move(file));
  segment.bytes = bytes;
  segment.base = base;
  AddFree(0, bytes);
  return true;
}

bool IsLive(uint64_t address) {
  const PinnedSegment& segment = TheSegment();
  return segment.base != 0 && address - segment.base < segment.bytes;
}

uint64_t LiveAddress(uint64_t offset) {
  const PinnedSegment& segment = TheSegment();
  return segment.base == 0 ? 0 : segment.base + offset;
}

bool AnyLive() { return TheSegment().live.load(std::memory_order_acquire) > 0; }

void CountLive(int change) { TheSegment().live.fetch_add(change); }

uint64_t TakePart(uint64_t bytes) {
  calls::lwHostPin pin;
  pin.bytes = bytes;
  {
    PinnedSegment& segment = TheSegment();
    base::MutexLock lock(segment.mutex);
    if (segment.file.get() < 0 || !segment.free.Take(bytes, &pin.offset)) return kNoPart;
  }
  if (TheSession().CallAndWait({0, nullptr, wire::kWantsReply}, pin).code == CUDA_SUCCESS) {
    return pin.offset;
  }
  AddFree(pin.offset, bytes);
  return kNoPart;
}

void GivePart(uint64_t offset, uint64_t bytes) {
  if (offset == kNoPart) return;
  calls::lwHostUnpin unpin;
  unpin.offset = offset;
  // What could not be given back is not used again.
  if (TheSession().CallAndWait({0, nullptr, wire::kWantsReply}, unpin).code == CUDA_SUCCESS) {
    AddFree(offset, bytes);
  }
}

std::byte* MapPart(uint64_t offset, uint64_t bytes) { return Map(offset, bytes, nullptr, 0); }

bool MapPart(uint64_t offset, uint64_t bytes, uint64_t address) {
  return Map(offset, bytes, reinterpret_cast<void*>(address), MAP_FIXED) != nullptr;
}

}  // namespace longwire::shim
