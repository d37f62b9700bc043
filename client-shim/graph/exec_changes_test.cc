// Changes of executables: which are sent without waiting, and what waits for them.
#include "client-shim/graph/exec_changes.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "client-shim/testing/fake_session.h"
#include "wire/record.h"

namespace longwire::shim {
namespace {

using testing::Eventually;
using testing::FakeSession;
using testing::Record;
using testing::Reply;

constexpr uint64_t kNode = 0x8000000000000071, kChild = 0x8000000000000072;

class ExecChangesTest : public testing::WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    exec_ = ClientSession::NewId();
    fake_.OnCall<calls::lwGraphSetKernel>([this](const Record& record) { return Arrive(record); });
    fake_.OnCall<calls::lwGraphSetChild>([this](const Record& record) { return Arrive(record); });
  }
  void TearDown() override {
    TheSession().AwaitAnswers();
    fake_.Reset();
    ForgetExecChanges(exec_);
    WithContext::TearDown();
  }

  std::optional<Reply> Arrive(const Record& record) {
    newest_ = record.position;
    flags_ = record.header.flags;
    ++arrived_;
    if (held_) return std::nullopt;
    if (code_ != CUDA_SUCCESS || record.call == CallId::lwGraphSetKernel) return Reply{code_, {}};
    return Reply::With(calls::lwGraphSetChild::Reply());
  }

  CUresult Set(uint64_t value, uint32_t blocks = 1) {
    const std::array<uint64_t, 1> bytes{value};
    calls::lwGraphSetKernel set;
    set.exec = exec_;
    set.node = kNode;
    set.kernel.function = 5;
    set.kernel.grid_x = blocks;
    set.kernel.parameters = std::as_bytes(std::span(bytes));
    return SetKernelInExec(WhereOf(context_), set);
  }
  calls::lwGraphSetChild Child() const {
    calls::lwGraphSetChild set;
    set.exec = exec_;
    set.node = kNode;
    set.child = kChild;
    return set;
  }
  bool IsKnown(const calls::lwGraphSetChild& child) {
    CUresult result = CUDA_ERROR_UNKNOWN;
    const bool known = SetKnownChild(WhereOf(context_), child, &result);
    EXPECT_EQ(result, known ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);
    return known;
  }
  // The server has the change, and its answer is not sent yet.
  uint64_t HoldAnswerTo(uint64_t value) {
    held_ = true;
    const int before = arrived_;
    EXPECT_EQ(Set(value), CUDA_SUCCESS);
    EXPECT_TRUE(Eventually([&] { return arrived_ == before + 1; }));
    EXPECT_EQ(flags_, wire::kUnawaited);
    return newest_;
  }
  // Whether `call` returns only when the answer at `position` has come.
  template <class Call>
  void ExpectWaits(uint64_t position, Call call) {
    std::atomic<bool> returned{false};
    std::thread caller([&] {
      call();
      returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(returned);
    held_ = false;
    fake_.SendReply(position, {code_, {}});
    caller.join();
  }

  uint64_t exec_ = 0;
  std::atomic<uint64_t> newest_{0};
  std::atomic<uint16_t> flags_{0};
  std::atomic<int> arrived_{0};
  std::atomic<bool> held_{false};
  std::atomic<CUresult> code_{CUDA_SUCCESS};
};

TEST_F(ExecChangesTest, OtherValuesDoNotWait) {
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  EXPECT_EQ(flags_, 0) << "the first one waits, and says so";
  const uint64_t first = HoldAnswerTo(2);
  const int before = arrived_;
  EXPECT_EQ(Set(3), CUDA_SUCCESS) << "and so does a further one";
  EXPECT_TRUE(Eventually([&] { return arrived_ == before + 1; }));
  const uint64_t second = newest_;
  EXPECT_EQ(BeforeLaunch(TheSession(), exec_), CUDA_SUCCESS) << "the worker launches in order";
  fake_.SendReply(first, {});
  ExpectWaits(second, [&] { TheSession().AwaitAnswers(); });
}

TEST_F(ExecChangesTest, WhatAsksForAnAnswerWaitsForThem) {
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  ExpectWaits(HoldAnswerTo(2), [&] {
    EXPECT_EQ(TheSession().CallAndWait({}, calls::lwMemoryInfo()).code, CUDA_SUCCESS);
  });
}

TEST_F(ExecChangesTest, AnotherThreadsChangeWaitsForThem) {
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  const uint64_t first = HoldAnswerTo(2);
  const int before = arrived_;
  ExpectWaits(first, [&] {
    EXPECT_EQ(Set(3), CUDA_SUCCESS);
    TheSession().AwaitAnswers();
  });
  EXPECT_EQ(arrived_, before + 1);
}

TEST_F(ExecChangesTest, AnotherShapeIsAnsweredByTheDriver) {
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  code_ = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(Set(2, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(BeforeLaunch(TheSession(), exec_), CUDA_SUCCESS) << "the program knows";
  code_ = CUDA_SUCCESS;
  EXPECT_EQ(Set(2, 2), CUDA_SUCCESS);
}

TEST_F(ExecChangesTest, WhatWasRefusedIsSaidAndNotLaunched) {
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  code_ = CUDA_ERROR_NOT_PERMITTED;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Set(2), CUDA_SUCCESS) << "nobody has looked yet";
  TheSession().AwaitAnswers();
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("CUDA_ERROR_NOT_PERMITTED"),
            std::string::npos);
  EXPECT_EQ(BeforeLaunch(TheSession(), exec_), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(BeforeLaunch(TheSession(), exec_), CUDA_ERROR_NOT_PERMITTED) << "it lasts";
  EXPECT_EQ(Set(3), CUDA_ERROR_NOT_PERMITTED) << "nothing is taken for granted now";
  code_ = CUDA_SUCCESS;
  EXPECT_EQ(Set(4), CUDA_SUCCESS);
  EXPECT_EQ(BeforeLaunch(TheSession(), exec_), CUDA_SUCCESS);
}

TEST_F(ExecChangesTest, AnUpdateForgetsThem) {
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  ForgetExecChanges(exec_);
  code_ = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(Set(2), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ExecChangesTest, AChildThatNobodyHasChangedDoesNotWait) {
  EXPECT_FALSE(IsKnown(Child())) << "never accepted";
  NoteChild(Child(), ClientSession::changes());
  EXPECT_TRUE(IsKnown(Child()));
  calls::lwGraphSetChild other = Child();
  ++other.child;
  EXPECT_FALSE(IsKnown(other));
  NoteChild(other, ClientSession::changes());
  EXPECT_TRUE(IsKnown(Child())) << "several are known";
  EXPECT_TRUE(IsKnown(other));
  TheSession().AwaitAnswers();
  ASSERT_EQ(Set(1), CUDA_SUCCESS);
  EXPECT_TRUE(IsKnown(Child())) << "changes of executables change no graph";
  TheSession().AwaitAnswers();
  static_cast<void>(TheSession().CallAndWait({}, calls::lwGraphAddKernel()));
  EXPECT_FALSE(IsKnown(Child())) << "it may have another node";
}

}  // namespace
}  // namespace longwire::shim
