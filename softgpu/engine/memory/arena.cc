#include "softgpu/engine/memory/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "wire/guards.h"

namespace softgpu {
namespace {

constexpr uint64_t kDefaultBase = 0x200000000000;
constexpr uint64_t kDefaultBytes = uint64_t{1} << 40;
constexpr uint64_t kSmallestBytes = uint64_t{1} << 30;

uint64_t Setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  return std::strtoull(text, nullptr, 0) / Arena::kGranule * Arena::kGranule;
}

void* Reserve(uint64_t base, uint64_t bytes, int flags) {
  void* p = mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

Arena& Arena::Get() {
  static Arena& arena = *new Arena;
  return arena;
}

// If the wanted range is taken, any other place will do; if the process may not reserve that much,
// half, and so on.
Arena::Arena() {
  uint64_t base = Setting("LONGWIRE_SOFTGPU_ARENA_BASE", kDefaultBase);
  uint64_t bytes = Setting("LONGWIRE_SOFTGPU_ARENA_BYTES", kDefaultBytes);
  for (; bytes >= kSmallestBytes; bytes = bytes / 2 / kGranule * kGranule) {
    if (Reserve(base, bytes, MAP_FIXED_NOREPLACE) != nullptr) {
      base_ = base;
    } else if (void* p = Reserve(0, bytes + kGranule, 0)) {
      base_ = (reinterpret_cast<uint64_t>(p) + kGranule - 1) / kGranule * kGranule;
    } else {
      continue;
    }
    bytes_ = bytes;
    break;
  }
  void* map = mmap(nullptr, (bytes_ / kGranule + 1) * sizeof(DeviceSet), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) bytes_ = 0;
  access_ = static_cast<std::atomic<DeviceSet>*>(map);
  if (longwire::wire::GuardIsOff("range_check")) {
    // What was never mapped counts as mapped, and is, so that a stray access harms nobody.
    mprotect(reinterpret_cast<void*>(base_), bytes_, PROT_READ | PROT_WRITE);
    std::memset(map, 0xff, bytes_ / kGranule * sizeof(DeviceSet));
  }
}

void Arena::Mark(uint64_t address, uint64_t bytes, DeviceSet devices) {
  uint64_t offset = address - base_;
  if (offset >= bytes_ || bytes > bytes_ - offset) return;
  for (uint64_t g = offset / kGranule; g < (offset + bytes) / kGranule; ++g) {
    access_[g].store(devices, std::memory_order_relaxed);
  }
}

}  // namespace softgpu
