#include "client-shim/context/windows.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/memory_sizes.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/descriptors.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

// Drivers accepted these on all GPUs tried. The last lies where thread sanitizer leaves room.
constexpr uint64_t kDefaultBases[] = {0x200000000000, 0x500000000000, 0x600000000000,
                                      0x7e8000000000};
// A device gets eight times its memory, mostly 256 GiB to 2 TiB, one after the other; eight large
// ones fit.
constexpr uint64_t kDefaultBytes = uint64_t{16} << 40;
constexpr uint64_t kLeastBytes = uint64_t{64} << 30;

// Addresses cost nothing, except under tools that keep a record of each page: memcheck takes 80
// bytes for every 64 KiB. The cost of a first piece shows how much can be afforded.
constexpr uint64_t kProbeBytes = uint64_t{16} << 30;
constexpr uint64_t kDear = uint64_t{4} << 20;      // bytes of memory, for the probe
constexpr uint64_t kBudget = uint64_t{160} << 20;  // bytes of memory, for all

// Where the process's addresses are limited (ulimit -v), half of what is left is for devices. Less
// than this would be of no use.
constexpr uint64_t kLeastOfLimited = uint64_t{256} << 20;
constexpr uint64_t kAlignment = base::kDeviceGranularityBytes;

struct Reserved {
  std::vector<wire::Window> windows;
  bool promised = false;  // they are free, but not reserved yet
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

void Release(uint64_t base, uint64_t bytes) { munmap(reinterpret_cast<void*>(base), bytes); }

// The process's mapped addresses and resident memory, in bytes.
struct Sizes {
  uint64_t addresses = 0, memory = 0;
};
Sizes OwnSizes() {
  unsigned long long addresses = 0, memory = 0;
  std::string text = wire::ReadFile("/proc/self/statm", 256);
  if (std::sscanf(text.c_str(), "%llu %llu", &addresses, &memory) != 2) return {};
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return {addresses * page, memory * page};
}

// The bytes of addresses that the process may still map.
uint64_t AddressesLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, OwnSizes().addresses);
}

uint64_t Affordable(const std::vector<uint64_t>& bases) {
  for (uint64_t base : bases) {
    uint64_t before = OwnSizes().memory;
    if (!Reserve(base, kProbeBytes)) continue;
    uint64_t after = OwnSizes().memory;
    Release(base, kProbeBytes);
    if (after < before + kDear) break;
    return kProbeBytes * std::max<uint64_t>(kBudget / (after - before), 1);
  }
  return UINT64_MAX;
}

// The largest part of `wanted` that is free there; 0: not even `least`.
uint64_t ReserveAt(uint64_t base, uint64_t wanted, uint64_t least) {
  // Where a part is taken (by sanitizers), a smaller window may fit.
  for (uint64_t bytes = wanted; bytes >= least; bytes = base::RoundDown(bytes / 2, kAlignment)) {
    if (Reserve(base, bytes)) return bytes;
  }
  return 0;
}

}  // namespace

std::vector<wire::Window> ReserveCandidates(const Options& options, std::string* sentence) {
  std::vector<uint64_t> bases = options.window_bases;
  if (bases.empty()) bases.assign(std::begin(kDefaultBases), std::end(kDefaultBases));
  uint64_t wanted = options.window_bytes != 0 ? options.window_bytes : kDefaultBytes;
  uint64_t least = std::min(wanted, kLeastBytes), most = wire::kMaxWindows;
  Reserved& reserved = TheReserved();
  uint64_t left = AddressesLeft();
  reserved.promised = left / 2 < wanted;
  if (reserved.promised) {
    wanted = base::RoundDown(left / 2, kAlignment);
    least = std::min(least, kLeastOfLimited);
  } else if (options.window_bytes == 0) {
    uint64_t affordable = Affordable(bases);
    if (affordable < wanted) most = 1;
    wanted = std::min(wanted, affordable);
    least = std::min(least, wanted);
  }
  for (uint64_t base : bases) {
    uint64_t bytes = ReserveAt(base, wanted, least);
    if (bytes == 0) continue;
    reserved.windows.push_back({base, bytes});
    // There is room for one, and the server chooses which.
    if (reserved.promised) Release(base, bytes);
    if (reserved.windows.size() == most) break;
  }
  if (reserved.windows.empty()) {
    *sentence = left == UINT64_MAX
                    ? "no range of addresses is free; LONGWIRE_WINDOW_BASES can name others"
                    : "this process may have " + std::to_string(left >> 20) +
                          " MiB of addresses more (ulimit -v); a device's memory takes half of "
                          "them, and " +
                          std::to_string(least >> 20) + " MiB at least";
  }
  return reserved.windows;
}

bool TakePromised(const std::vector<wire::Window>& used) {
  Reserved& reserved = TheReserved();
  if (!reserved.promised) return true;
  reserved.promised = false;
  reserved.windows = used;
  return std::all_of(used.begin(), used.end(),
                     [](const wire::Window& window) { return Reserve(window.base, window.bytes); });
}

bool MayKeepMore() { return !TheReserved().promised; }

void ReleaseUnused(std::vector<wire::Window> used) {
  std::ranges::sort(used, {}, &wire::Window::base);
  std::vector<wire::Window> kept;
  for (const wire::Window& candidate : TheReserved().windows) {
    uint64_t at = candidate.base;
    const uint64_t end = candidate.base + candidate.bytes;
    for (const wire::Window& window : used) {
      if (window.base < at || window.base >= end) continue;
      if (window.base > at) Release(at, window.base - at);
      at = std::min(window.base + window.bytes, end);
      kept.push_back({window.base, at - window.base});
    }
    if (at < end) Release(at, end - at);
  }
  TheReserved().windows = kept;
}

}  // namespace longwire::shim
