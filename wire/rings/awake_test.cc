#include "wire/rings/awake.h"

#include <gtest/gtest.h>

#include "wire/rings/ring.h"

namespace longwire::wire {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Awake, NobodyStaysAwakeUnasked) {
  Awake awake;
  awake.Moved(Clock::now());
  EXPECT_FALSE(awake.Stays(Clock::now()));
  std::atomic<uint64_t> allowed{0}, spent{0};
  awake.Follow(&allowed, &spent);
  EXPECT_FALSE(awake.Stays(Clock::now()));
}

TEST(Awake, UntilTheTimeAfterTheLastMessageIsOver) {
  std::atomic<uint64_t> allowed{100'000'000}, spent{0};
  Awake awake;
  awake.Follow(&allowed, &spent);
  const auto begun = Clock::now();
  awake.Moved(begun);
  EXPECT_TRUE(awake.Stays(begun + milliseconds(99)));
  EXPECT_FALSE(awake.Stays(begun + milliseconds(100)));
  awake.Moved(begun + milliseconds(50));
  EXPECT_TRUE(awake.Stays(begun + milliseconds(149)));
  EXPECT_TRUE(awake.Stays(begun)) << "another thread has just had a message";
  allowed = 0;
  EXPECT_FALSE(awake.Stays(begun + milliseconds(50))) << "it was taken back";
}

TEST(Awake, CountsOnlyWhatIsSpunBeyondTheUsual) {
  std::atomic<uint64_t> allowed{1'000'000'000'000}, spent{0};
  Awake awake;
  awake.Follow(&allowed, &spent);
  awake.Moved(Clock::now());
  { AwakeWait asked_nothing(awake); }
  EXPECT_EQ(spent, 0u);
  {
    AwakeWait wait(awake);
    for (const auto end = Clock::now() + milliseconds(5); Clock::now() < end;) {
      EXPECT_TRUE(wait.Stays(Clock::now()));
    }
  }
  EXPECT_GT(spent, 0u);
}

TEST(Awake, ARingIsWatchedWithoutSleep) {
  auto memory = RingMemory::Create(64 << 10);
  ASSERT_NE(memory, nullptr);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  EXPECT_FALSE(consumer.SpinBeyond(0, Clock::now() + milliseconds(1)));
  memory->PokeConsumer();
  EXPECT_TRUE(consumer.SpinBeyond(0, Clock::now() + milliseconds(1)));
  EXPECT_FALSE(consumer.HasBeyond(0)) << "it was only poked";
  EXPECT_FALSE(consumer.SpinBeyond(0, Clock::now()));
  producer.Commit(8);
  EXPECT_TRUE(consumer.SpinBeyond(0, Clock::now()));
  EXPECT_TRUE(consumer.HasBeyond(0));
  EXPECT_FALSE(consumer.HasBeyond(8));
}

}  // namespace
}  // namespace longwire::wire
