#include "base/mutex.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>
#include <vector>

namespace longwire::base {
namespace {

constexpr LockRank kLow{1, "low"};

struct Counter {
  Mutex mutex{kLow};
  CondVar changed;
  int value LONGWIRE_GUARDED_BY(mutex) = 0;
};

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&counter] {
      for (int j = 0; j < 10'000; ++j) {
        MutexLock lock(counter.mutex);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(counter.mutex);
  EXPECT_EQ(40'000, counter.value);
}

TEST(MutexTest, ALockLetsGoInBetween) {
  Counter counter;
  MutexLock lock(counter.mutex);
  lock.Unlock();
  std::async(std::launch::async, [&counter] {
    MutexLock other(counter.mutex);
    counter.value = 7;
  }).get();
  lock.Lock();
  EXPECT_EQ(7, counter.value);
}

TEST(MutexTest, ALockThatHasLetGoReleasesNothing) {
  Counter counter;
  {
    MutexLock lock(counter.mutex);
    lock.Unlock();
  }
  MutexLock lock(counter.mutex);
  EXPECT_EQ(0, counter.value);
}

TEST(MutexTest, TryLockFailsWhileAnotherThreadHoldsIt) {
  Counter counter;
  MutexLock lock(counter.mutex);
  auto takes = [&counter] {
    if (!counter.mutex.TryLock()) return false;
    counter.mutex.Unlock();
    return true;
  };
  EXPECT_FALSE(std::async(std::launch::async, takes).get());
  lock.Unlock();
  EXPECT_TRUE(std::async(std::launch::async, takes).get());
  lock.Lock();
}

TEST(MutexTest, ALockReleasesTheMutexThatItAdopted) {
  Counter counter;
  if (counter.mutex.TryLock()) {
    MutexLock lock(counter.mutex, AdoptLock());
    counter.value = 3;
  }
  MutexLock lock(counter.mutex);
  EXPECT_EQ(3, counter.value);
}

TEST(MutexTest, ALambdaMayAssertThatTheMutexIsHeld) {
  Counter counter;
  auto increase = [&counter] {
    counter.mutex.AssertHeld();
    ++counter.value;
  };
  MutexLock lock(counter.mutex);
  increase();
  EXPECT_EQ(1, counter.value);
}

TEST(CondVarTest, AWaitEndsWhenAnotherThreadSaysSo) {
  Counter counter;
  std::thread other([&counter] {
    MutexLock lock(counter.mutex);
    counter.value = 1;
    counter.changed.NotifyAll();
  });
  {
    MutexLock lock(counter.mutex);
    while (counter.value == 0) counter.changed.Wait(lock);
    EXPECT_EQ(1, counter.value);
  }
  other.join();
}

TEST(CondVarTest, AWaitEndsAtItsTime) {
  Counter counter;
  MutexLock lock(counter.mutex);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (counter.changed.WaitUntil(lock, deadline)) {
  }
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

#if LONGWIRE_LOCK_CHECKS

constexpr LockRank kHigh{2, "high"};

// What clang refuses to compile.
void LockTwice(Mutex& mutex) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS {
  mutex.Lock();
  mutex.Lock();
}
bool TryToLock(Mutex& mutex) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS { return mutex.TryLock(); }
void OnlyUnlock(Mutex& mutex) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }

class LockOrderDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  Mutex low_{kLow}, also_low_{kLow}, high_{kHigh}, unranked_;
  CondVar changed_;
};

TEST_F(LockOrderDeathTest, RisingRanksAreInOrder) {
  MutexLock low(low_);
  MutexLock unranked(unranked_);
  MutexLock high(high_);
  low.Unlock();
  unranked.Unlock();
  high.Unlock();
  low.Lock();
  high.Lock();
}

TEST_F(LockOrderDeathTest, AFallingRankEndsTheProcess) {
  MutexLock high(high_);
  EXPECT_DEATH(MutexLock low(low_), "lock order: low is taken while high is held");
}

TEST_F(LockOrderDeathTest, TheSameRankEndsTheProcess) {
  MutexLock low(low_);
  EXPECT_DEATH(MutexLock also(also_low_), "lock order: low is taken while low is held");
}

TEST_F(LockOrderDeathTest, AMutexThatTheThreadHoldsEndsTheProcess) {
  EXPECT_DEATH(LockTwice(low_), "lock order: low is taken while low is held");
}

TEST_F(LockOrderDeathTest, TheOrderHoldsWithAMutexWithoutARankBetween) {
  MutexLock high(high_);
  MutexLock unranked(unranked_);
  EXPECT_DEATH(MutexLock low(low_), "lock order: low is taken while high is held");
}

TEST_F(LockOrderDeathTest, OtherThreadsHaveTheirOwnOrder) {
  MutexLock high(high_);
  std::async(std::launch::async, [this] { MutexLock low(low_); }).get();
}

TEST_F(LockOrderDeathTest, AnotherThreadsMutexCannotBeReleased) {
  low_.Lock();
  EXPECT_DEATH(std::async(std::launch::async, [this] { OnlyUnlock(low_); }).get(),
               "released by a thread that does not hold it");
  low_.Unlock();
}

TEST_F(LockOrderDeathTest, TryLockKeepsTheOrder) {
  MutexLock high(high_);
  EXPECT_DEATH(static_cast<void>(TryToLock(low_)), "lock order: low is taken while high is held");
}

TEST_F(LockOrderDeathTest, AMutexThatIsNotHeldIsNoticed) {
  {
    MutexLock low(low_);
    low_.AssertHeld();
  }
  EXPECT_DEATH(low_.AssertHeld(), "lock order: low is not held where it has to be");
}

TEST_F(LockOrderDeathTest, NothingRankedIsHeldInAWait) {
  AssertNoRankedLockHeld();
  MutexLock unranked(unranked_);
  AssertNoRankedLockHeld();
  MutexLock low(low_);
  EXPECT_DEATH(AssertNoRankedLockHeld(), "lock order: a thread waits while low is held");
  low.Unlock();
  AssertNoRankedLockHeld();
}

TEST_F(LockOrderDeathTest, AConditionIsWaitedForWithItsOwnMutexOnly) {
  auto now = std::chrono::steady_clock::now();
  MutexLock low(low_);
  changed_.WaitUntil(low, now);
  MutexLock high(high_);
  EXPECT_DEATH(changed_.WaitUntil(high, now), "lock order: a thread waits while low is held");
}

TEST_F(LockOrderDeathTest, MoreLocksThanCanBeWatchedEndTheProcess) {
  std::vector<LockRank> ranks;
  for (int i = 0; i < 32; ++i) ranks.push_back({i, "one of many"});
  EXPECT_DEATH(for (const LockRank& rank : ranks) PushLock(&rank, rank), "too many locks");
}

#else

TEST(MutexTest, CostsWhatTheLibrarysCosts) { EXPECT_EQ(sizeof(std::mutex), sizeof(Mutex)); }

#endif

}  // namespace
}  // namespace longwire::base
