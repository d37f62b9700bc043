#include "client-shim/mirror/waiting_hint.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "client-shim/connect/options.h"
#include "client-shim/context/context.h"
#include "client-shim/mirror/held_pages.h"
#include "client-shim/mirror/mirror_table.h"
#include "client-shim/stream/host_writes.h"
#include "client-shim/support/own_memory.h"
#include "client-shim/support/threads.h"
#include "wire/switches.h"

namespace longwire::shim {
namespace {

constexpr std::chrono::seconds kPeriod{1};
constexpr int kSeconds = 5;

constexpr const char* kSentence =
    "work has been running for 5 s, and the program has written more than a word to pinned memory "
    "that kernels reach. A kernel that waits for that waits for ever: run the program on the "
    "server's own host (--server unix:), or let streams wait for values (docs/host-memory.md). If "
    "this is NCCL: set NCCL_P2P_LEVEL=SYS, and LONGWIRE_DEVICES so that every process has all the "
    "devices; or NCCL_SHM_DISABLE=1, and NCCL_HOSTID to another one for each (docs/nccl.md)";

constexpr const char* kAnswer =
    "work has been running for 5 s, and a message of several words was passed to it. An answer of "
    "more than a word cannot come; it can with the program on the server's own host (--server "
    "unix:) (docs/host-memory.md)";

// Without this right nothing of several words comes from the device.
constexpr const char* kAllow =
    ". Longwire may not hold pages of memory here: allow it by vm.unprivileged_userfaultfd=1, by "
    "rights to open /dev/userfaultfd, or by CAP_SYS_PTRACE";

bool AnythingIsUnfinished() {
  std::vector<StreamPoint> points = UnfinishedWorkOfAll();
  for (StreamPoint& point : points) Release(point.stream);
  return !points.empty();
}

bool HasWrittenPinned(Mirrors& mirrors) LONGWIRE_REQUIRES(mirrors.mutex) {
  return std::ranges::any_of(mirrors.by_address, [](const auto& entry) {
    const Mirror& mirror = *entry.second;
    if (mirror.range.managed || mirror.vanished) return false;
    const auto memory = mirror.memory();
    if (!mirror.range.may_vanish) {
      return std::memcmp(memory.data(), mirror.shadow, memory.size()) != 0;
    }
    // Registered memory the program may unmap while nothing is queued.
    std::vector<std::byte> copy(memory.size());
    const iovec from{const_cast<std::byte*>(memory.data()), memory.size()};
    return ReadOwnMemory({from}, {{copy.data(), copy.size()}}) &&
           std::memcmp(copy.data(), mirror.shadow, copy.size()) != 0;
  });
}

void Watch(void*) {
  Mirrors& mirrors = TheMirrors();
  const char* sentence = nullptr;
  uint64_t works = 0, exchanged = 0;
  for (int seconds = 0; seconds < kSeconds;) {
    std::this_thread::sleep_for(kPeriod);
    // Streams that wait for values see what the program has written.
    const bool runs = AnyMirrors() && AnythingIsUnfinished() && !HostWritePending(0, kAnywhere);
    base::MutexLock lock(mirrors.mutex);
    const uint64_t words = mirrors.words + mirrors.applied;
    const bool same = runs && mirrors.works == works && mirrors.begun == 0 && words == exchanged;
    works = mirrors.works;
    exchanged = words;
    seconds = same ? seconds + 1 : 0;
    if (seconds != kSeconds) continue;
    if (HasWrittenPinned(mirrors)) {
      sentence = kSentence;
    } else if (mirrors.sent_state && !MayHoldPages()) {
      sentence = kAnswer;
    } else {
      --seconds;
    }
  }
  const bool may = wire::IsSwitchedOff("whole-states") || MayHoldPages();
  Say("%s%s. This is said once", sentence, may ? "" : kAllow);
}

}  // namespace

void WatchForWaitingKernels() {
  static const bool watches = StartThread("longwire-hint", Watch, nullptr);
  static_cast<void>(watches);
}

}  // namespace longwire::shim
