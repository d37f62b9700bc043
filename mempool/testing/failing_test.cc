// A lease or a mapping fails at every single point of a script: the program gets the error, nothing
// is lost, and everything works afterwards.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "mempool/testing/watched_pool.h"

namespace longwire::mempool::testing {
namespace {

// Allocations that were refused; all others are freed at the end.
int RunScript(WatchedPool& watched) {
  std::vector<uint64_t> taken;
  int refused = 0;
  auto take = [&](uint64_t bytes) {
    uint64_t address = 0;
    if (watched.Allocate(bytes, &address) == kDone) {
      taken.push_back(address);
    } else {
      ++refused;
    }
  };
  auto give = [&](size_t index, unsigned busy) {
    if (taken.empty()) return;
    index %= taken.size();
    watched.Free(taken[index], busy);
    taken.erase(taken.begin() + static_cast<ptrdiff_t>(index));
  };
  for (uint64_t round = 0; round < 4; ++round) {
    for (uint64_t bytes : {uint64_t{1000}, 3 * kMiB, 63 * kMiB, 64 * kMiB, 300 * kMiB, kGiB}) {
      take(bytes + round * kMiB);
      watched.Work(round % 3);
    }
    give(4, 7);
    give(2, 1);
    give(0, 0);
    take(700 * kMiB);
    watched.pool.GiveBack(100 * kMiB);
    give(5, 2);
    take(900 * kMiB);
    watched.Progress(round % 3, 10);
  }
  while (!taken.empty()) give(0, 0);
  return refused;
}

TEST(Failing, AtEveryStepNothingIsLost) {
  for (uint64_t device_bytes : {64 * kGiB, 5 * kGiB}) {
    uint64_t calls = 0;
    {
      WatchedPool watched(device_bytes);
      RunScript(watched);
      calls = watched.device.calls();
    }
    ASSERT_GT(calls, 20u);
    for (uint64_t nth = 1; nth <= calls; ++nth) {
      WatchedPool watched(device_bytes);
      watched.device.FailAt(nth);
      RunScript(watched);
      ASSERT_EQ("", watched.fault()) << nth;
      watched.FinishAll();
      ASSERT_EQ(watched.device.leased(), watched.pool.leased()) << nth;
      uint64_t all = 0;
      ASSERT_EQ(kDone, watched.Allocate(device_bytes, &all)) << nth;
      watched.Free(all);
      watched.pool.GiveBack(UINT64_MAX);
      ASSERT_EQ(0u, watched.device.leased()) << nth;
      ASSERT_EQ("", watched.fault()) << nth;
    }
  }
}

TEST(Failing, OneFailureRefusesAtMostOneAllocation) {
  for (uint64_t nth = 1; nth <= 30; ++nth) {
    WatchedPool watched(64 * kGiB);
    watched.device.FailAt(nth);
    EXPECT_LE(RunScript(watched), 1) << nth;
  }
}

}  // namespace
}  // namespace longwire::mempool::testing
