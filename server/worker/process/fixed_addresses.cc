#include "server/worker/process/fixed_addresses.h"

#include <malloc.h>
#include <sys/personality.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "server/worker/walls/settings.h"

namespace longwire::worker {
namespace {

constexpr unsigned long kAsItIs = 0xffffffff;

bool AsksForFixed(std::span<char* const> words) {
  const std::vector<std::string> options = LookAtSettings(words);
  for (size_t i = 0; i + 1 < options.size(); ++i) {
    if (options[i] == "--addresses") return options[i + 1] == "fixed";
  }
  return false;
}

// Memory of malloc takes no place among the driver's: how much there was before must not matter.
void KeepMallocInTheHeap() {
  constexpr int kNever = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kNever);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_ARENA_MAX, 1);
}

}  // namespace

bool HasFixedAddresses() {
  return (static_cast<unsigned long>(personality(kAsItIs)) & ADDR_NO_RANDOMIZE) != 0;
}

void FixAddresses(std::span<char*> words) {
  if (!AsksForFixed(words.subspan(1))) return;
  if (!HasFixedAddresses()) {
    const auto now = static_cast<unsigned long>(personality(kAsItIs));
    if (personality(now | ADDR_NO_RANDOMIZE) >= 0) execv("/proc/self/exe", words.data());
    std::fprintf(stderr,
                 "longwire-worker: its addresses cannot be fixed (%s): its session cannot move\n",
                 std::strerror(errno));
    return;
  }
  KeepMallocInTheHeap();
}

}  // namespace longwire::worker
