#include "base/lock_order.h"

#if LONGWIRE_LOCK_CHECKS

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace longwire::base {
namespace {

// More than any thread holds at once.
constexpr size_t kMaxLocksHeld = 16;

struct Held {
  const void* mutex;
  const LockRank* rank;
};

// Plain data: it needs no constructor in a new thread and no destructor at a thread's end, when
// others' destructors still take locks.
struct HeldLocks {
  Held locks[kMaxLocksHeld];
  size_t count;
};
thread_local constinit HeldLocks held{};

[[noreturn]] void Fail(const char* format, const char* first, const char* second) {
  fprintf(stderr, format, first, second);
  fputc('\n', stderr);
  abort();
}

}  // namespace

void PushLock(const void* mutex, const LockRank& rank) {
  for (size_t i = 0; i < held.count; ++i) {
    const LockRank& other = *held.locks[i].rank;
    if (other.order >= rank.order) {
      Fail("lock order: %s is taken while %s is held", rank.name, other.name);
    }
  }
  if (held.count == kMaxLocksHeld) Fail("lock order: too many locks: %s%s", rank.name, "");
  held.locks[held.count++] = {mutex, &rank};
}

void PopLock(const void* mutex) {
  for (size_t i = held.count; i-- > 0;) {
    if (held.locks[i].mutex != mutex) continue;
    for (--held.count; i < held.count; ++i) held.locks[i] = held.locks[i + 1];
    return;
  }
  Fail("lock order: %s%s is released by a thread that does not hold it", "a mutex", "");
}

void AssertLockHeld(const void* mutex, const LockRank& rank) {
  for (size_t i = 0; i < held.count; ++i) {
    if (held.locks[i].mutex == mutex) return;
  }
  Fail("lock order: %s%s is not held where it has to be", rank.name, "");
}

void AssertNoRankedLockHeld() { AssertNoRankedLockHeldBut(nullptr); }

void AssertNoRankedLockHeldBut(const void* mutex) {
  for (size_t i = 0; i < held.count; ++i) {
    if (held.locks[i].mutex == mutex) continue;
    Fail("lock order: a thread waits while %s%s is held", held.locks[i].rank->name, "");
  }
}

}  // namespace longwire::base

#endif
