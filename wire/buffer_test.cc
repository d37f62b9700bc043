#include "wire/buffer.h"

#include <gtest/gtest.h>

#include "wire/limits.h"
#include "wire/open.h"

namespace longwire::wire {
namespace {

TEST(Buffer, ReadsBackWhatWasWritten) {
  Writer writer;
  writer.U8(1);
  writer.U16(2);
  writer.U32(3);
  writer.U64(4);
  writer.I32(-5);
  writer.F64(0.5);
  writer.String("six");
  Reader reader(writer.span());
  uint8_t u8 = 0;
  uint16_t u16 = 0;
  uint32_t u32 = 0;
  uint64_t u64 = 0;
  int32_t i32 = 0;
  double f64 = 0;
  std::string text;
  ASSERT_EQ(reader.U8(&u8), WireResult::kOk);
  ASSERT_EQ(reader.U16(&u16), WireResult::kOk);
  ASSERT_EQ(reader.U32(&u32), WireResult::kOk);
  ASSERT_EQ(reader.U64(&u64), WireResult::kOk);
  ASSERT_EQ(reader.I32(&i32), WireResult::kOk);
  ASSERT_EQ(reader.F64(&f64), WireResult::kOk);
  ASSERT_EQ(reader.String(&text), WireResult::kOk);
  EXPECT_EQ(u8 + u16 + u32 + u64, 10u);
  EXPECT_EQ(i32, -5);
  EXPECT_EQ(f64, 0.5);
  EXPECT_EQ(text, "six");
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(Buffer, FixedWriterReportsOverflowAndWritesNothingMore) {
  std::byte memory[6] = {};
  Writer writer(memory);
  writer.U32(7);
  writer.U32(8);
  EXPECT_TRUE(writer.overflowed());
  writer.U8(9);
  EXPECT_EQ(writer.size(), 4u);
}

TEST(Buffer, FailureIsSticky) {
  std::byte memory[4] = {};
  Reader reader(memory);
  uint64_t wide = 0;
  uint8_t narrow = 0;
  EXPECT_EQ(reader.U64(&wide), WireResult::kFatal);
  EXPECT_EQ(reader.U8(&narrow), WireResult::kFatal);
  EXPECT_EQ(reader.remaining(), 0u);
}

TEST(Buffer, CountsAndLengthsAreHeldAgainstWhatIsLeft) {
  Writer writer;
  writer.U32(0x40000000);
  writer.U32(0);
  uint32_t count = 0;
  std::span<const std::byte> view;
  Reader counts(writer.span());
  EXPECT_EQ(counts.Count(&count, 16, SIZE_MAX), WireResult::kFatal);
  Reader lengths(writer.span());
  EXPECT_EQ(lengths.Bytes(&view), WireResult::kFatal);
}

OpenReply SampleReply() {
  OpenReply reply;
  reply.sentence = "hello";
  reply.session = 12;
  DeviceDescription device;
  device.name = "device";
  device.attributes = {{1, 0, 1024}, {2, 1, 0}};
  device.window = {0x200000000000, uint64_t{1} << 40};
  device.leased = {{3, 64 << 20}};
  reply.devices.push_back(device);
  reply.processes.push_back({"longwired", "host", 42});
  reply.missing_calls = {"cuNothing"};
  return reply;
}

TEST(Open, ReplyRoundTripsAndRefusesEveryTruncation) {
  Writer writer;
  SampleReply().Encode(writer);
  OpenReply decoded;
  Reader whole(writer.span());
  ASSERT_EQ(decoded.Decode(whole), WireResult::kOk);
  EXPECT_EQ(decoded.devices.at(0).attributes.at(0).value, 1024);
  EXPECT_EQ(decoded.processes.at(0).pid, 42u);
  for (size_t length = 0; length < writer.size(); ++length) {
    Reader cut(writer.span().first(length));
    OpenReply partial;
    EXPECT_EQ(partial.Decode(cut), WireResult::kFatal) << length;
  }
}

TEST(Open, WhatALaterFieldNeedsIsWrittenBeforeIt) {
  OpenReply reply = SampleReply();
  reply.segment_base = 0x350000000000;
  Writer writer;
  reply.Encode(writer);
  OpenReply decoded;
  Reader whole(writer.span());
  ASSERT_EQ(decoded.Decode(whole), WireResult::kOk);
  EXPECT_EQ(decoded.segment_base, reply.segment_base);
  EXPECT_EQ(decoded.bridge_lanes, 0u);
  EXPECT_EQ(decoded.versions, reply.versions);
}

TEST(Open, WhatBecomesOfABridgesBytesIsTheLastField) {
  OpenReply reply = SampleReply();
  reply.bridges_hold_back = OpenReply::kHeldBack;
  Writer writer;
  reply.Encode(writer);
  OpenReply decoded;
  Reader whole(writer.span());
  ASSERT_EQ(decoded.Decode(whole), WireResult::kOk);
  EXPECT_EQ(decoded.bridges_hold_back, OpenReply::kHeldBack);
  EXPECT_EQ(decoded.segment_base, 0u);
  EXPECT_EQ(decoded.versions, reply.versions);
  // Who knows no such choice sends a reply without it.
  Writer older;
  SampleReply().Encode(older);
  Reader without(older.span());
  OpenReply of_older;
  ASSERT_EQ(of_older.Decode(without), WireResult::kOk);
  EXPECT_EQ(of_older.bridges_hold_back, 0u);
}

TEST(Open, ABridgeHasAsManyLanesAsTheClientIfThereIsRoom) {
  EXPECT_EQ(BridgeLanes(1, 1), 4u);
  EXPECT_EQ(BridgeLanes(1, 8), 8u);
  EXPECT_EQ(BridgeLanes(2, 8), 4u);
  EXPECT_EQ(BridgeLanes(7, 8), 1u);
  EXPECT_EQ(BridgeLanes(7, 10), 0u);
}

TEST(Open, RequestWithNewerProtocolDecodesItsNumberOnly) {
  const uint32_t next = kBuiltVersions.newest + 1;
  OpenRequest request;
  request.versions = {next, next};
  Writer writer;
  request.Encode(writer);
  OpenRequest decoded;
  Reader reader(writer.span().first(8));
  EXPECT_EQ(decoded.Decode(reader), WireResult::kOk);
  EXPECT_EQ(decoded.versions, request.versions);
}

TEST(Open, WindowThatWrapsAroundIsRefused) {
  OpenRequest request;
  request.windows = {{~uint64_t{0} - 10, 100}};
  Writer writer;
  request.Encode(writer);
  OpenRequest decoded;
  Reader reader(writer.span());
  EXPECT_EQ(decoded.Decode(reader), WireResult::kFatal);
}

}  // namespace
}  // namespace longwire::wire
