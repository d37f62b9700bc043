#include "softgpu/engine/memory/private_memory.h"

#include <sys/mman.h>

#include <bit>

namespace softgpu {
namespace {

constexpr uint64_t kSmallest = 256;                  // bytes
constexpr uint64_t kWanted = uint64_t{64} << 30;     // bytes of address space
constexpr uint64_t kRequired = uint64_t{256} << 20;  // below this the device is of no use
constexpr uint64_t kGiveBack = uint64_t{1} << 20;    // larger free pieces give pages back

}  // namespace

PrivateMemory& PrivateMemory::Get() {
  static PrivateMemory& memory = *new PrivateMemory;
  return memory;
}

PrivateMemory::PrivateMemory() : free_(64) {
  for (uint64_t bytes = kWanted; bytes >= kRequired; bytes /= 2) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    madvise(p, bytes, MADV_DONTDUMP);
    base_ = reinterpret_cast<uint64_t>(p);
    bytes_ = bytes;
    return;
  }
}

int PrivateMemory::ClassOf(uint64_t bytes) {
  return std::bit_width((bytes < kSmallest ? kSmallest : bytes) - 1);
}

uint64_t PrivateMemory::Allocate(uint64_t bytes) {
  if (bytes > bytes_) return 0;
  int size_class = ClassOf(bytes);
  base::MutexLock lock(mutex_);
  if (!free_[size_class].empty()) {
    uint64_t address = free_[size_class].back();
    free_[size_class].pop_back();
    return address;
  }
  uint64_t size = uint64_t{1} << size_class;
  if (size > bytes_ - used_) return 0;
  used_ += size;
  return base_ + used_ - size;
}

void PrivateMemory::Free(uint64_t address, uint64_t bytes) {
  if (address == 0) return;
  int size_class = ClassOf(bytes);
  uint64_t size = uint64_t{1} << size_class;
  if (size > kGiveBack) madvise(reinterpret_cast<void*>(address), size, MADV_DONTNEED);
  base::MutexLock lock(mutex_);
  free_[size_class].push_back(address);
}

}  // namespace softgpu
