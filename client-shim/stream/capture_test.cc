#include "client-shim/stream/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "client-shim/graph/graph.h"
#include "client-shim/session/process_state.h"
#include "client-shim/stream/captured_graph.h"
#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Record;
using testing::Reply;

class CaptureTest : public testing::WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    special_before_ = special_calls;
    stream_ = NewTestStream();
    other_ = NewTestStream();
    Stream* legacy = nullptr;
    ASSERT_EQ(LegacyStream(context_, &legacy), CUDA_SUCCESS);
    legacy_ = legacy;
    fake_.Take();
  }
  void TearDown() override {
    for (Stream* stream : {stream_, other_}) {
      CUgraph graph = nullptr;
      Capture* capture = stream->capture;
      if (capture != nullptr && capture->origin == stream) EndCapture(stream, &graph);
    }
    EXPECT_EQ(special_calls, special_before_);
    EXPECT_EQ(ThisThread().strict_captures, 0u);
    EXPECT_EQ(context_->captures, 0u);
    EXPECT_EQ(context_->blocking_captures, 0u);
    WithContext::TearDown();
  }

  static Capture* Begin(Stream* stream, CaptureMode mode = CaptureMode::kGlobal) {
    EXPECT_EQ(BeginCapture(stream, mode, nullptr, {}), CUDA_SUCCESS);
    return stream->capture;
  }
  static CUresult End(Stream* stream) {
    CUgraph graph = nullptr;
    CUresult result = EndCapture(stream, &graph);
    EXPECT_EQ(graph != nullptr, result == CUDA_SUCCESS);
    return result;
  }
  static CUstreamCaptureStatus Status(Stream* stream) {
    uint64_t id = 0;
    return CaptureStatus(stream, &id);
  }

  int special_before_ = 0;
  Stream* stream_ = nullptr;
  Stream* other_ = nullptr;
  Stream* legacy_ = nullptr;
};

TEST_F(CaptureTest, AStreamGoesThroughItsStates) {
  uint64_t id = 1;
  EXPECT_EQ(CaptureStatus(stream_, &id), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(id, 0u);
  Capture* first = Begin(stream_);
  EXPECT_EQ(CaptureStatus(stream_, &id), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(id, first->id);
  Invalidate(first);
  id = 0;
  EXPECT_EQ(CaptureStatus(stream_, &id), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_EQ(id, first->id);
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(Begin(stream_)->id, first->id + 1);
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
  EXPECT_EQ(End(stream_), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(CaptureTest, CallsAreMarkedWhileTheirStreamCaptures) {
  Where where;
  EXPECT_EQ(OpenWhere(stream_, &where), CUDA_SUCCESS);
  EXPECT_EQ(where.flags, 0);
  EXPECT_EQ(where.stream, stream_);
  EXPECT_EQ(where.context, context_->number);
  Capture* capture = Begin(stream_);
  EXPECT_EQ(OpenWhere(stream_, &where), CUDA_SUCCESS);
  EXPECT_EQ(where.flags, wire::kCapturing);
  EXPECT_EQ(OpenWhere(other_, &where), CUDA_SUCCESS);
  EXPECT_EQ(where.flags, 0);
  Invalidate(capture);
  EXPECT_EQ(OpenWhere(stream_, &where), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(OpenWhere(other_, &where), CUDA_SUCCESS);
}

// What is captured is no work of the stream.
TEST_F(CaptureTest, ACapturedCallLeavesTheStreamIdle) {
  Begin(stream_);
  fake_.Hold(stream_);
  const uint64_t last = stream_->last;
  Where where;
  ASSERT_EQ(OpenWhere(stream_, &where), CUDA_SUCCESS);
  EXPECT_NE(TheSession().Submit(where, calls::lwMemset()), ClientSession::kNoPosition);
  EXPECT_EQ(stream_->last, last);
  EXPECT_TRUE(stream_->Idle());
  fake_.LetGo(stream_);
}

TEST_F(CaptureTest, BeginningTellsTheServerModeAndStream) {
  for (auto mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    Begin(stream_, mode);
    std::vector<Record> records = fake_.Take();
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].As<calls::lwCaptureBegin>().mode, static_cast<uint32_t>(mode));
    EXPECT_EQ(records[0].As<calls::lwCaptureBegin>().graph, 0u);
    EXPECT_EQ(records[0].header.stream, stream_->id);
    EXPECT_EQ(End(stream_), CUDA_SUCCESS);
    fake_.Take();
  }
}

TEST_F(CaptureTest, SomeStreamsCannotBegin) {
  EXPECT_EQ(BeginCapture(legacy_, CaptureMode::kRelaxed, nullptr, {}),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  Begin(stream_);
  fake_.Take();
  EXPECT_EQ(BeginCapture(stream_, CaptureMode::kGlobal, nullptr, {}), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  fake_.OnCall<calls::lwCaptureBegin>([](const Record&) {
    return Reply{CUDA_ERROR_OUT_OF_MEMORY, {}};
  });
  EXPECT_EQ(BeginCapture(other_, CaptureMode::kGlobal, nullptr, {}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(CaptureTest, TheLegacyStreamBreaksCapturesThatItWouldWaitFor) {
  Where where;
  EXPECT_EQ(OpenWhere(legacy_, &where), CUDA_SUCCESS);
  // In a relaxed capture, too: the mode is about other things.
  for (auto mode : {CaptureMode::kGlobal, CaptureMode::kRelaxed}) {
    Capture* capture = Begin(stream_, mode);
    EXPECT_EQ(OpenWhere(legacy_, &where), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_TRUE(capture->invalidated);
    EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(OpenWhere(legacy_, &where), CUDA_SUCCESS);
  }
  Stream* apart = NewTestStream(StreamKind::kNonBlocking);
  Capture* capture = Begin(apart);
  EXPECT_EQ(OpenWhere(legacy_, &where), CUDA_SUCCESS);
  EXPECT_FALSE(capture->invalidated);
  EXPECT_EQ(End(apart), CUDA_SUCCESS);
}

TEST_F(CaptureTest, TheLegacyStreamOfAnotherContextBreaksNothing) {
  Context* other = nullptr;
  Stream* legacy = nullptr;
  ASSERT_EQ(NewContext(0, 0, &other), CUDA_SUCCESS);
  ASSERT_EQ(LegacyStream(other, &legacy), CUDA_SUCCESS);
  Capture* capture = Begin(stream_);
  Where where;
  EXPECT_EQ(OpenWhere(legacy, &where), CUDA_SUCCESS);
  EXPECT_EQ(RefuseContextWhileCapturing(other), CUDA_SUCCESS);
  EXPECT_FALSE(capture->invalidated);
  EXPECT_EQ(RefuseContextWhileCapturing(context_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_TRUE(capture->invalidated);
  EXPECT_EQ(EndContext(other), CUDA_SUCCESS);
}

TEST_F(CaptureTest, WhatCannotBeCapturedBreaksTheStreamsCapture) {
  Capture* first = Begin(stream_);
  Capture* second = Begin(other_);
  EXPECT_EQ(RefuseWhileCapturing(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_TRUE(first->invalidated);
  EXPECT_FALSE(second->invalidated);
  EXPECT_EQ(RefuseWhileCapturing(NewTestStream()), CUDA_SUCCESS);
}

// What a thread may not do, by its own mode and the mode of a capture.
struct Unsafe {
  CaptureMode capture;
  bool same_thread;
  CaptureMode thread;
  bool forbidden;
};

TEST_F(CaptureTest, UnsafeCallsAreForbiddenByModes) {
  constexpr auto kGlobal = CaptureMode::kGlobal, kLocal = CaptureMode::kThreadLocal,
                 kRelaxed = CaptureMode::kRelaxed;
  const std::vector<Unsafe> rows = {
      {kGlobal, true, kGlobal, true},   {kGlobal, true, kLocal, true},
      {kGlobal, true, kRelaxed, false}, {kGlobal, false, kGlobal, true},
      {kGlobal, false, kLocal, false},  {kGlobal, false, kRelaxed, false},
      {kLocal, true, kGlobal, true},    {kLocal, true, kLocal, true},
      {kLocal, true, kRelaxed, false},  {kLocal, false, kGlobal, false},
      {kLocal, false, kLocal, false},   {kLocal, false, kRelaxed, false},
      {kRelaxed, true, kGlobal, false}, {kRelaxed, false, kGlobal, false},
      {kRelaxed, true, kLocal, false},
  };
  for (const Unsafe& row : rows) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(row.capture) << " " << row.same_thread
                                      << " " << static_cast<int>(row.thread));
    EXPECT_FALSE(IsUnsafeCallForbidden());
    Capture* capture = Begin(stream_, row.capture);
    const auto check = [&] {
      ThisThread().capture_mode = row.thread;
      EXPECT_EQ(IsUnsafeCallForbidden(), row.forbidden);
      EXPECT_FALSE(capture->invalidated);
      EXPECT_EQ(RefuseUnsafeCall(),
                row.forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
      EXPECT_EQ(capture->invalidated, row.forbidden);
      ThisThread().capture_mode = kGlobal;
    };
    if (row.same_thread) {
      check();
    } else {
      std::thread(check).join();
    }
    End(stream_);
  }
}

TEST_F(CaptureTest, AnUnsafeCallBreaksWhatForbidsItAndNothingElse) {
  Capture* relaxed = Begin(stream_, CaptureMode::kRelaxed);
  Capture* local = Begin(other_, CaptureMode::kThreadLocal);
  std::thread([&] { EXPECT_EQ(RefuseUnsafeCall(), CUDA_SUCCESS); }).join();
  EXPECT_FALSE(local->invalidated);
  EXPECT_EQ(RefuseUnsafeCall(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_TRUE(local->invalidated);
  EXPECT_FALSE(relaxed->invalidated);
}

TEST_F(CaptureTest, AWaitJoinsTheCaptureOfItsEvent) {
  Capture* capture = Begin(stream_);
  const uint32_t references = other_->references;
  EXPECT_EQ(JoinCapture(other_, capture), CUDA_SUCCESS);
  EXPECT_EQ(other_->capture, capture);
  EXPECT_EQ(other_->references, references + 1);
  EXPECT_EQ(JoinCapture(other_, capture), CUDA_SUCCESS);  // it is in it already
  EXPECT_EQ(JoinCapture(stream_, capture), CUDA_SUCCESS);
  EXPECT_EQ(other_->references, references + 1);
  EXPECT_EQ(End(other_), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(other_->references, references);
}

TEST_F(CaptureTest, WaitsThatBreakCaptures) {
  EXPECT_EQ(JoinCapture(stream_, nullptr), CUDA_SUCCESS);  // nobody captures
  Capture* own = Begin(stream_);
  EXPECT_EQ(JoinCapture(stream_, nullptr), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_TRUE(own->invalidated);
  End(stream_);

  own = Begin(stream_);
  Capture* others = Begin(other_);
  EXPECT_EQ(JoinCapture(stream_, others), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_TRUE(own->invalidated);
  EXPECT_TRUE(others->invalidated);
  End(stream_);
  End(other_);

  own = Begin(stream_);
  EXPECT_EQ(JoinCapture(legacy_, own), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_TRUE(own->invalidated);
  EXPECT_EQ(legacy_->capture, nullptr);
}

TEST_F(CaptureTest, AnEndedCapturesEventsAreNoneToWaitFor) {
  Capture* ended = Begin(stream_);
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
  EXPECT_EQ(JoinCapture(other_, ended), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
  Capture* own = Begin(other_);
  EXPECT_EQ(JoinCapture(other_, ended), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(own->invalidated);
}

TEST_F(CaptureTest, OnlyARelaxedCaptureEndsInAnotherThread) {
  Begin(stream_);
  std::thread([&] { EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); }).join();
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(End(stream_), CUDA_SUCCESS);
  Begin(stream_, CaptureMode::kRelaxed);
  std::thread([&] { EXPECT_EQ(End(stream_), CUDA_SUCCESS); }).join();
}

TEST_F(CaptureTest, TheGraphOfABrokenCaptureIsDestroyed) {
  Capture* capture = Begin(stream_);
  Invalidate(capture);
  fake_.Take();
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwCaptureEnd", "lwGraphDestroy"));
  capture = Begin(stream_);
  fake_.OnCall<calls::lwCaptureEnd>([](const Record&) {
    return Reply{CUDA_ERROR_STREAM_CAPTURE_UNJOINED, {}};
  });
  fake_.Take();
  EXPECT_EQ(End(stream_), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(Status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_THAT(fake_.TakeNames(), ElementsAre("lwCaptureEnd"));
}

}  // namespace
}  // namespace longwire::shim
