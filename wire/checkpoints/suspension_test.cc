#include "wire/checkpoints/suspension.h"

#include <gtest/gtest.h>

namespace longwire::wire {
namespace {

TEST(SuspensionTest, ARequestArrivesAsItWas) {
  SuspensionRequest request;
  request.wish = SuspensionWish::kRestore;
  request.session = 0x1234567890;
  request.pid = 77;
  request.host = "gpu-user";
  request.device[15] = 9;
  Writer writer;
  request.Encode(writer);
  ASSERT_TRUE(IsSuspensionRequest(writer.span()));
  SuspensionRequest read;
  Reader reader(writer.span());
  ASSERT_EQ(read.Decode(reader), WireResult::kOk);
  EXPECT_EQ(read.wish, request.wish);
  EXPECT_EQ(read.session, request.session);
  EXPECT_EQ(read.pid, request.pid);
  EXPECT_EQ(read.host, request.host);
  EXPECT_EQ(read.device, request.device);
}

TEST(SuspensionTest, WhatIsCutOffOrUnknownIsRefused) {
  SuspensionRequest request;
  request.wish = static_cast<SuspensionWish>(3);
  Writer writer;
  request.Encode(writer);
  SuspensionRequest read;
  Reader unknown(writer.span());
  EXPECT_EQ(read.Decode(unknown), WireResult::kFatal);
  SuspensionReply reply;
  reply.sentence = "why";
  Writer answer;
  reply.Encode(answer);
  for (size_t bytes = 0; bytes < 24; ++bytes) {
    SuspensionReply cut;
    Reader reader(answer.span().first(bytes));
    EXPECT_EQ(cut.Decode(reader), WireResult::kFatal) << bytes;
  }
}

TEST(SuspensionTest, AReplyArrivesAsItWas) {
  SuspensionReply reply;
  reply.done = reply.answered = true;
  reply.sentence = std::string(5000, 'x');
  Writer writer;
  reply.Encode(writer);
  SuspensionReply read;
  Reader reader(writer.span());
  ASSERT_EQ(read.Decode(reader), WireResult::kOk);
  EXPECT_TRUE(read.done);
  EXPECT_TRUE(read.answered);
  EXPECT_FALSE(read.suspended);
  EXPECT_EQ(read.sentence.size(), 4096u) << "as much as may come";
}

}  // namespace
}  // namespace longwire::wire
