#include "client-shim/windows.h"

#include <sys/mman.h>

#include <algorithm>

#include "client-shim/never_destroyed.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

// Honoured by drivers on the GPUs tried; the last lies where thread sanitizer leaves room.
constexpr uint64_t kDefaultBases[] = {0x200000000000, 0x500000000000, 0x600000000000,
                                      0x7e8000000000};
// A device gets eight times its memory, mostly 256 GiB to 2 TiB, one after the other; eight large
// ones fit.
constexpr uint64_t kDefaultBytes = uint64_t{16} << 40;
constexpr uint64_t kLeastBytes = uint64_t{64} << 30;

struct Reserved {
  std::vector<wire::Window> windows;
};
Reserved& TheReserved() {
  static NeverDestroyed<Reserved> reserved;
  return *reserved;
}

bool Reserve(uint64_t base, uint64_t bytes) {
  void* address = reinterpret_cast<void*>(base);
  void* got = mmap(address, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return false;
  if (got == address) return true;
  munmap(got, bytes);  // a kernel that does not know MAP_FIXED_NOREPLACE
  return false;
}

}  // namespace

std::vector<wire::Window> ReserveCandidates(const Options& options) {
  std::vector<uint64_t> bases = options.window_bases;
  if (bases.empty()) bases.assign(std::begin(kDefaultBases), std::end(kDefaultBases));
  uint64_t wanted = options.window_bytes != 0 ? options.window_bytes : kDefaultBytes;
  std::vector<wire::Window>& windows = TheReserved().windows;
  for (uint64_t base : bases) {
    // A place that is partly taken (sanitizers, limits on address space) may hold a smaller one.
    for (uint64_t bytes = wanted; bytes >= std::min(wanted, kLeastBytes); bytes /= 2) {
      if (!Reserve(base, bytes)) continue;
      windows.push_back({base, bytes});
      break;
    }
    if (windows.size() == wire::kMaxWindows) break;
  }
  return windows;
}

void ReleaseUnused(const std::vector<wire::Window>& used) {
  std::vector<wire::Window> kept;
  for (const wire::Window& candidate : TheReserved().windows) {
    uint64_t low = candidate.base, high = candidate.base;
    for (const wire::Window& window : used) {
      if (window.base < candidate.base || window.base >= candidate.base + candidate.bytes) continue;
      high = std::max(high, window.base + window.bytes);
    }
    uint64_t end = candidate.base + candidate.bytes;
    high = std::min(high, end);
    if (high < end) munmap(reinterpret_cast<void*>(high), end - high);
    if (high > low) kept.push_back({low, high - low});
  }
  TheReserved().windows = kept;
}

}  // namespace longwire::shim
