// What this process does between servers for a stream: when it begins, and that it runs once.
#include "client-shim/stream/waits_across.h"

#include <gtest/gtest.h>

#include <atomic>

#include "client-shim/stream/callbacks.h"
#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

using testing::Eventually;
using wire::DownKind;

class WaitsAcrossTest : public testing::WithContext {
 protected:
  static void Count(void* runs) { static_cast<std::atomic<int>*>(runs)->fetch_add(1); }
  // What the server has sent so far has been read.
  void Read(Stream* stream) {
    Work(stream);
    ASSERT_TRUE(Eventually([stream] { return stream->Idle(); }));
  }
  // Another's, behind nothing: what was to run before it has run. Held, as a server does not say
  // that a function has ended before the program does.
  void RunOneMore() {
    std::atomic<int> runs{0};
    uint64_t position = 0;
    Stream* stream = NewTestStream();
    fake_.Hold(stream);
    ASSERT_EQ(RunAcross(stream, &Count, &runs, true, &position), CUDA_SUCCESS);
    ASSERT_TRUE(Eventually([&] { return runs == 1; }));
    fake_.LetGo(stream);
  }
  // Of the function that was queued last.
  uint64_t Ticket() {
    return fake_.TakeOnly<calls::lwHostFunction>().back().As<calls::lwHostFunction>().ticket;
  }

  std::atomic<int> runs_{0};
};

TEST_F(WaitsAcrossTest, BehindFinishedWorkItNeedsNoWordOfTheServer) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  uint64_t position = 0;
  ASSERT_EQ(RunAcross(stream, &Count, &runs_, true, &position), CUDA_SUCCESS);
  EXPECT_TRUE(Eventually([&] { return stream->finished >= position; }));
  EXPECT_EQ(runs_, 1);
  fake_.SendRecord(DownKind::kHostFunction, 0, {Ticket()});
  fake_.LetGo(stream);
  Read(stream);
  RunOneMore();
  EXPECT_EQ(runs_, 1);
}

TEST_F(WaitsAcrossTest, BehindUnfinishedWorkItWaitsForIt) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  Work(stream);
  uint64_t position = 0;
  ASSERT_EQ(RunAcross(stream, &Count, &runs_, true, &position), CUDA_SUCCESS);
  const uint64_t ticket = Ticket();
  RunOneMore();
  EXPECT_EQ(runs_, 0);
  EXPECT_LT(stream->finished, position);
  fake_.SendRecord(DownKind::kHostFunction, 0, {ticket});
  EXPECT_TRUE(Eventually([&] { return runs_ == 1; }));
  fake_.LetGo(stream);
}

TEST_F(WaitsAcrossTest, WhatIsToWaitForTheServerDoes) {
  Stream* stream = NewTestStream();
  fake_.Hold(stream);
  uint64_t position = 0;
  ASSERT_EQ(RunAcross(stream, &Count, &runs_, false, &position), CUDA_SUCCESS);
  const uint64_t ticket = Ticket();
  RunOneMore();
  EXPECT_EQ(runs_, 0);
  fake_.SendRecord(DownKind::kHostFunction, 0, {ticket});
  EXPECT_TRUE(Eventually([&] { return runs_ == 1; }));
  fake_.LetGo(stream);
}

// The server may have reached it before this process has got that far.
TEST_F(WaitsAcrossTest, TheServersWordDoesNotRunItASecondTime) {
  Stream* stream = NewTestStream();
  const uint64_t ticket = NewFunctionAcross(&Count, &runs_, stream->context_number, true);
  fake_.SendRecord(DownKind::kHostFunction, 0, {ticket});
  Read(stream);
  RunOneMore();
  EXPECT_EQ(runs_, 0);
  RunFunctionAcross(stream, ticket, 0);
  RunOneMore();
  EXPECT_EQ(runs_, 1);
}

}  // namespace
}  // namespace longwire::shim
