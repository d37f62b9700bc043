#include "server/worker/support/call_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace longwire::worker {
namespace {

// Beside a deque: every call comes out once, in order, with its own arguments.
TEST(CallQueue, GivesWhatItTook) {
  CallQueue queue;
  std::deque<std::pair<uint64_t, size_t>> expected;
  std::mt19937 random(1);
  QueuedCall call;
  for (uint64_t position = 0; position < 200'000; ++position) {
    bool grows = position / 10'000 % 2 == 0;
    if (random() % 100 < (grows ? 70 : 40)) {
      size_t bytes = random() % 700;
      call.position = position;
      call.arguments.assign(bytes, std::byte(position));
      queue.Push(call);
      expected.emplace_back(position, bytes);
    } else if (!expected.empty()) {
      size_t last = expected.size() - 1;
      ASSERT_EQ(expected[last].first, queue[last].position);
      auto [first, bytes] = expected.front();
      ASSERT_EQ(first, queue.front().position);
      ASSERT_EQ(std::vector<std::byte>(bytes, std::byte(first)), queue.front().arguments);
      queue.Pop();
      expected.pop_front();
    }
    ASSERT_EQ(expected.size(), queue.size());
  }
}

TEST(CallQueue, ALongQueueKeepsNoMemoryOfArguments) {
  CallQueue queue;
  QueuedCall call;
  for (int i = 0; i < 3000; ++i) queue.Push(call);
  size_t kept = 0;
  for (int i = 0; i < 5000; ++i) {
    call.arguments.assign(400, {});
    queue.Push(call);
    kept = std::max(kept, call.arguments.capacity());
    queue.Pop();
  }
  EXPECT_EQ(kept, 0u);
}

TEST(CallQueue, MemoryOfArgumentsIsUsedAgainUnlessItIsMuch) {
  CallQueue queue;
  QueuedCall call;
  auto passed = [&](size_t bytes) {  // the slot of a call of this size is used again
    for (int i = 0; i < 64; ++i) {
      call.arguments.assign(bytes, {});
      queue.Push(call);
      queue.Pop();
    }
    call.arguments = std::vector<std::byte>();
    queue.Push(call);
    queue.Pop();
    return call.arguments.capacity();
  };
  EXPECT_GE(passed(100), 100u);
  EXPECT_EQ(0u, passed(1 << 20));
}

}  // namespace
}  // namespace longwire::worker
