#include "server/worker/process/driver_mappings.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace longwire::worker {
namespace {

// Between the ranges in which clients look for theirs (client-shim/context/windows.cc).
constexpr uint64_t kFirst = 0x400000000000;
constexpr uint64_t kLast = 0x500000000000;
// The driver aligns what it maps itself; a gap, so that two are never one.
constexpr uint64_t kAlignment = uint64_t{2} << 20;
constexpr size_t kLeast = size_t{64} << 10;

std::atomic<bool> fixed{false};
std::atomic<uint64_t> next{kFirst};

bool IsDriver(void* code) {
  Dl_info info{};
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return false;
  std::string_view path = info.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("libcuda.so");
}

void* SystemMap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  long mapped = syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  return reinterpret_cast<void*>(mapped);  // MAP_FAILED is -1
}

void* Map(void* address, size_t bytes, int protection, int flags, int file, off_t offset,
          void* caller) {
  const bool anywhere = address == nullptr && (flags & MAP_FIXED) == 0 && bytes >= kLeast;
  if (anywhere && fixed.load() && bytes < kLast - kFirst && IsDriver(caller)) {
    const uint64_t place = next.fetch_add((bytes + 2 * kAlignment - 1) / kAlignment * kAlignment);
    const int error = errno;
    void* mapped = MAP_FAILED;
    if (place < kLast && bytes <= kLast - place) {
      mapped = SystemMap(reinterpret_cast<void*>(place), bytes, protection,
                         flags | MAP_FIXED_NOREPLACE, file, offset);
    }
    if (mapped != MAP_FAILED) return mapped;
    errno = error;
  }
  return SystemMap(address, bytes, protection, flags, file, offset);
}

}  // namespace

void FixDriverMappings() { fixed = true; }

}  // namespace longwire::worker

// Sanitizers have their own in this place.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// These stand before the C library's for all that this process loads (exported from the
// executable).
extern "C" __attribute__((visibility("default"))) void* mmap(void* address, size_t bytes,
                                                             int protection, int flags, int file,
                                                             off_t offset) noexcept {
  return longwire::worker::Map(address, bytes, protection, flags, file, offset,
                               __builtin_return_address(0));
}

extern "C" __attribute__((visibility("default"))) void* mmap64(void* address, size_t bytes,
                                                               int protection, int flags, int file,
                                                               off64_t offset) noexcept {
  return longwire::worker::Map(address, bytes, protection, flags, file, offset,
                               __builtin_return_address(0));
}

#endif
