// Frames made smaller, and when: the wire, the codecs and the processors are simulated.
#include "link/transport/packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "wire/limits.h"

namespace longwire::transport {
namespace {

using std::chrono::duration;
using std::chrono::nanoseconds;
using Bytes = std::vector<std::byte>;

constexpr size_t kFrame = size_t{256} << 10;

Bytes Repetitive(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i / 64 % 251);
  return bytes;
}

Bytes Random(size_t size) {
  Bytes bytes(size);
  std::mt19937_64 random(1);
  for (size_t i = 0; i + 8 <= size; i += 8) {
    uint64_t word = random();
    std::memcpy(&bytes[i], &word, 8);
  }
  return bytes;
}

ReceivedFrame FrameOf(const Bytes& body) {
  ReceivedFrame frame;
  frame.header.flags = kFramePacked;
  frame.header.position = 77;
  frame.body = {std::span(body).first(body.size() / 2), std::span(body).subspan(body.size() / 2)};
  frame.bytes = body.size();
  return frame;
}

class CodecTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Each, CodecTest, testing::Values(kPackLz4, kPackZstd));

TEST_P(CodecTest, WhatIsUnpackedIsWhatWasPacked) {
  Packer packer;
  packer.Allow(GetParam() | kPackAlways);
  Unpacker unpacker;
  for (size_t size : {size_t{5000}, kFrame, wire::kMaxBatchBytes}) {
    Bytes bytes = Repetitive(size);
    auto packed = packer.Pack(bytes);
    ASSERT_NE(packed, nullptr);
    EXPECT_LT(packed->size(), size / 2);
    ReceivedFrame plain;
    ASSERT_EQ(unpacker.Unpack(FrameOf(*packed), GetParam(), &plain), WireResult::kOk);
    EXPECT_EQ(plain.header.flags, 0u);
    EXPECT_EQ(plain.header.position, 77u);
    ASSERT_EQ(plain.bytes, size);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), plain.body[0].begin()));
  }
}

TEST_P(CodecTest, WhatDoesNotGetSmallerGoesAsItIs) {
  Packer packer;
  packer.Allow(GetParam() | kPackAlways);
  EXPECT_EQ(packer.Pack(Random(kFrame)), nullptr);
  EXPECT_EQ(packer.Pack(Repetitive(100)), nullptr);  // too little to be worth it
}

TEST_P(CodecTest, WhatIsStillBeingSentIsNotWrittenOver) {
  Packer packer;
  packer.Allow(GetParam() | kPackAlways);
  auto first = packer.Pack(Repetitive(kFrame));
  Bytes copy = *first;
  auto second = packer.Pack(Bytes(kFrame));
  EXPECT_NE(first, second);
  EXPECT_EQ(*first, copy);
}

TEST_P(CodecTest, DamagedFramesAreRefused) {
  Packer packer;
  packer.Allow(GetParam() | kPackAlways);
  Bytes good = *packer.Pack(Repetitive(kFrame));
  Unpacker unpacker;
  auto refused = [&](const Bytes& body, uint32_t packing) {
    ReceivedFrame plain;
    return unpacker.Unpack(FrameOf(body), packing, &plain) == WireResult::kFatal;
  };
  EXPECT_FALSE(refused(good, GetParam()));
  EXPECT_TRUE(refused(good, kPackAuto & ~GetParam())) << "not agreed on";
  EXPECT_TRUE(refused(good, 0));
  for (uint32_t bytes : {uint32_t{0}, uint32_t(kFrame - 1), uint32_t(kFrame + 1), ~uint32_t{0}}) {
    Bytes other = good;
    std::memcpy(other.data() + offsetof(PackedHeader, bytes), &bytes, sizeof(bytes));
    EXPECT_TRUE(refused(other, GetParam())) << bytes;
  }
  for (uint32_t codec : {0u, 3u, 4u, ~0u}) {
    Bytes other = good;
    std::memcpy(other.data() + offsetof(PackedHeader, codec), &codec, sizeof(codec));
    EXPECT_TRUE(refused(other, ~0u)) << codec;
  }
  EXPECT_TRUE(refused(Bytes(good.begin(), good.begin() + 9), GetParam()));
  EXPECT_TRUE(refused(Bytes(good.begin(), good.end() - 1), GetParam()));
  EXPECT_TRUE(refused(Bytes(8), GetParam()));
  EXPECT_TRUE(refused(Bytes(wire::kMaxBatchBytes + 1), GetParam()));
}

// A wire of `rate` bytes per second behind processors that pack so fast, to so small a part.
struct Simulation {
  double rate = 0;
  double lz4_speed = 700e6, lz4_part = 0.5;
  double zstd_speed = 250e6, zstd_part = 0.35;
  double slowdown = 1;  // of everything, as when other programs have the processors

  PackingChoice choice;
  uint64_t sent = 0;
  uint64_t delivered = 0;
  uint64_t on_wire = 0;
  PackingChoice::Time now{};

  // Acknowledged is what came before, and with `acknowledged` the frame, too.
  void SendFrame(bool acknowledged = true) {
    choice.Delivered(delivered, sent, now);
    sent += kFrame;
    choice.Sent(sent, kFrame, now);
    choice.Delivered(delivered, sent, now);
    bool lz4 = choice.codec() == Codec::kLz4;
    bool packs = choice.codec() != Codec::kNone;
    double part = !packs ? 1 : lz4 ? lz4_part : zstd_part;
    double speed = lz4 ? lz4_speed : zstd_speed;
    auto moved = static_cast<size_t>(static_cast<double>(kFrame) * part);
    double seconds = slowdown * (static_cast<double>(moved) / rate + (packs ? kFrame / speed : 0));
    now += std::chrono::duration_cast<nanoseconds>(duration<double>(seconds));
    on_wire += moved;
    if (packs) choice.Packed(kFrame, moved);
    if (acknowledged) delivered = sent;
    choice.Delivered(delivered, sent, now);
  }
  // Frames with rests between them. Only every fourth is acknowledged at once, as with lanes: the
  // rests look as if bytes were on their way.
  double RunWithRests(int frames) {
    uint64_t sent_before = sent, wire_before = on_wire;
    for (int i = 1; i <= frames; ++i) {
      SendFrame(i % 4 == 0);
      now += std::chrono::milliseconds(2);
    }
    return static_cast<double>(on_wire - wire_before) / static_cast<double>(sent - sent_before);
  }
  // The part of the log's bytes that crosses the wire.
  double Run(uint64_t megabytes) {
    uint64_t sent_before = sent, wire_before = on_wire;
    while (sent - sent_before < megabytes << 20) SendFrame();
    return static_cast<double>(on_wire - wire_before) / static_cast<double>(sent - sent_before);
  }
};

Simulation Wire(double rate, uint32_t packing = kPackAuto) {
  Simulation simulation;
  simulation.rate = rate;
  simulation.choice.Allow(packing);
  return simulation;
}

TEST(PackingChoice, ANarrowWireGetsTheStrongerCodec) {
  Simulation wire = Wire(12e6);
  wire.Run(128);
  EXPECT_NEAR(wire.Run(512), wire.zstd_part, 0.05);
}

TEST(PackingChoice, AWiderOneTheFasterCodec) {
  Simulation wire = Wire(200e6);
  wire.Run(128);
  EXPECT_NEAR(wire.Run(512), wire.lz4_part, 0.05);
}

TEST(PackingChoice, AWideOneNone) { EXPECT_EQ(Wire(1e9).Run(4096), 1); }

TEST(PackingChoice, WhereItDoesNotPayItIsTriedRarely) {
  Simulation wire = Wire(350e6);
  wire.lz4_speed = 300e6;
  wire.Run(1024);
  EXPECT_GT(wire.Run(8192), 0.98);
}

TEST(PackingChoice, BytesThatDoNotGetSmallerArePackedForAFewFramesOnly) {
  Simulation wire = Wire(12e6);
  wire.lz4_part = wire.zstd_part = 0.97;
  wire.Run(4096);
  uint64_t before = wire.on_wire;
  wire.Run(1024);
  EXPECT_GT(static_cast<double>(wire.on_wire - before) / (1024 << 20), 0.998);
}

TEST(PackingChoice, ItFollowsTheBytes) {
  Simulation wire = Wire(12e6);
  wire.Run(256);
  wire.lz4_part = wire.zstd_part = 1;
  EXPECT_GT(wire.Run(256), 0.95);
  wire.lz4_part = wire.zstd_part = 0.3;
  wire.Run(1024);  // the pauses between trials grow
  EXPECT_LT(wire.Run(256), 0.5);
}

TEST(PackingChoice, ItLeavesACodecThatNoLongerPays) {
  Simulation wire = Wire(100e6);
  wire.Run(512);
  EXPECT_LT(wire.Run(64), 0.8);
  wire.rate = 5e9;
  wire.Run(1024);
  EXPECT_GT(wire.Run(1024), 0.95);
}

TEST(PackingChoice, OnlyWhatIsAllowed) {
  Simulation wire = Wire(12e6, kPackLz4);
  wire.Run(128);
  EXPECT_NEAR(wire.Run(512), wire.lz4_part, 0.05);
  EXPECT_EQ(Wire(1e6, 0).Run(512), 1);
  EXPECT_EQ(Wire(1e6, kPackAlways).Run(512), 1);
  EXPECT_NEAR(Wire(1e9, kPackZstd | kPackAlways).Run(64), 0.35, 0.001);
}

TEST(PackingChoice, TimeWithNothingOnItsWayDoesNotCount) {
  Simulation wire = Wire(1e9);
  for (int i = 0; i < 1000; ++i) {
    wire.SendFrame();
    wire.now += std::chrono::seconds(1);
  }
  EXPECT_EQ(wire.on_wire, wire.sent);
}

TEST(PackingChoice, AFastWireIsKnownWhereMostIsAcknowledgedLate) {
  EXPECT_EQ(Wire(2e9).RunWithRests(4000), 1);
}

TEST(PackingChoice, SoIsASlowOne) {
  Simulation wire = Wire(50e6);
  wire.RunWithRests(1000);
  EXPECT_LT(wire.RunWithRests(1000), 0.6);
}

TEST(PackingChoice, AWireThatWasFastIsLookedAtAgain) {
  Simulation wire = Wire(2e9);
  EXPECT_EQ(wire.RunWithRests(1000), 1);
  wire.rate = 12e6;
  wire.Run(1024);
  EXPECT_LT(wire.Run(512), 0.5);
}

TEST(PackingChoice, SmallFramesShowNothing) {
  PackingChoice choice;
  choice.Allow(kPackAuto);
  PackingChoice::Time now{};
  uint64_t sent = 0;
  // 128 MiB in frames that are acknowledged within a microsecond, then a wait for the next.
  while (sent < 128 << 20 && choice.codec() == Codec::kNone) {
    sent += 4096;
    choice.Sent(sent, 4096, now);
    choice.Delivered(sent - 4096, sent, now);
    now += std::chrono::milliseconds(1);
    choice.Delivered(sent, sent, now);
  }
  EXPECT_NE(choice.codec(), Codec::kNone);
}

TEST(PackingChoice, KnowsTheWordsOfUsers) {
  uint32_t packing = 99;
  EXPECT_TRUE(ParsePacking("auto", &packing) && packing == kPackAuto);
  EXPECT_TRUE(ParsePacking("none", &packing) && packing == 0);
  EXPECT_TRUE(ParsePacking("zstd", &packing) && packing == (kPackZstd | kPackAlways));
  EXPECT_FALSE(ParsePacking("gzip", &packing));
  EXPECT_EQ(AgreedPacking(~0u, true), kPackAuto | kPackAlways);
  EXPECT_EQ(AgreedPacking(~0u, false), 0u);
}

}  // namespace
}  // namespace longwire::transport
