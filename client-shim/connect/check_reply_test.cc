#include "client-shim/connect/check_reply.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <functional>

#include "wire/limits.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTop = uint64_t{1} << 63;

class CheckReplyTest : public ::testing::Test {
 protected:
  CheckReplyTest() {
    reply_.allocation_granularity = 2 * kMiB;
    reply_.upload_window = wire::kUploadWindowBytes;
    reply_.stream_share = kMiB;
    reply_.lanes = 2;
    reply_.segment_bytes = kGiB;
    reply_.largest_chunk = 512 * kMiB;
    for (uint64_t base : {offered_[1].base, offered_[1].base + 4 * kGiB}) {
      wire::DeviceDescription device;
      device.window = {base, 4 * kGiB};
      device.leased = {{1, 64 * kMiB}};
      device.attributes = {{CU_DEVICE_ATTRIBUTE_WARP_SIZE, CUDA_SUCCESS, 32}};
      reply_.devices.push_back(device);
    }
  }

  // Whether it is accepted after this change.
  bool Accepted(const std::function<void(wire::OpenReply&)>& change) const {
    wire::OpenReply reply = reply_;
    change(reply);
    return ProblemOfReply(reply, {offered_, 2, true}).empty();
  }
  bool AcceptedWithWindow(uint64_t base, uint64_t bytes) const {
    return Accepted([&](wire::OpenReply& reply) { reply.devices[1].window = {base, bytes}; });
  }

  const wire::Window offered_[2] = {{0x100000000000, kGiB}, {0x200000000000, 8 * kGiB}};
  wire::OpenReply reply_;
};

TEST_F(CheckReplyTest, ATrueOneIsAccepted) {
  EXPECT_EQ(ProblemOfReply(reply_, {offered_, 2, true}), "");
  EXPECT_TRUE(AcceptedWithWindow(offered_[0].base, kGiB));
  EXPECT_TRUE(AcceptedWithWindow(offered_[1].base + 8 * kGiB - 64 * kMiB, 64 * kMiB));
}

TEST_F(CheckReplyTest, AWindowLiesWhereOneWasOffered) {
  int of_the_program = 0;
  uint64_t address = reinterpret_cast<uint64_t>(&of_the_program) / (2 * kMiB) * (2 * kMiB);
  EXPECT_FALSE(AcceptedWithWindow(address, 2 * kMiB));
  EXPECT_FALSE(AcceptedWithWindow(0, 4 * kGiB));
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base - 2 * kMiB, 2 * kMiB));
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base + 8 * kGiB, 2 * kMiB));
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base + 4 * kGiB, 4 * kGiB + 2 * kMiB));
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base + 4 * kGiB, kTop));
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base + 4 * kGiB, 0));
  EXPECT_FALSE(AcceptedWithWindow(offered_[0].base, 2 * kGiB));
  EXPECT_FALSE(AcceptedWithWindow(kTop, kGiB));
}

TEST_F(CheckReplyTest, PinnedMemoryLiesWhereRoomWasOffered) {
  auto accepted = [&](uint64_t base, uint64_t bytes) {
    return Accepted([&](wire::OpenReply& reply) {
      reply.segment_base = base;
      reply.segment_bytes = bytes;
    });
  };
  int of_the_program = 0;
  uint64_t address = reinterpret_cast<uint64_t>(&of_the_program) / (2 * kMiB) * (2 * kMiB);
  EXPECT_TRUE(accepted(offered_[0].base, kGiB));
  EXPECT_FALSE(accepted(offered_[0].base, 0));
  EXPECT_FALSE(accepted(offered_[0].base, 2 * kGiB));
  EXPECT_FALSE(accepted(offered_[0].base + 4096, 64 * kMiB));
  EXPECT_FALSE(accepted(offered_[1].base + 6 * kGiB, kGiB)) << "a device's memory is there";
  EXPECT_FALSE(accepted(address, 2 * kMiB));
  EXPECT_FALSE(accepted(~uint64_t{0} / (2 * kMiB) * (2 * kMiB), 4 * kMiB));
}

TEST_F(CheckReplyTest, WindowsAreWholeAndApart) {
  EXPECT_FALSE(AcceptedWithWindow(offered_[0].base + 4096, kGiB / 2));
  EXPECT_FALSE(AcceptedWithWindow(offered_[0].base, kGiB - 4096));
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base + 4 * kGiB - 2 * kMiB, kGiB)) << "overlap";
  EXPECT_FALSE(AcceptedWithWindow(offered_[1].base, 4 * kGiB)) << "the first one's";
}

TEST_F(CheckReplyTest, Granularity) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{3}, uint64_t{4096}, 3 * kMiB, 2 * kGiB, kTop}) {
    EXPECT_FALSE(Accepted([&](auto& reply) { reply.allocation_granularity = bytes; })) << bytes;
  }
}

TEST_F(CheckReplyTest, SizesAndCounts) {
  EXPECT_FALSE(Accepted([](auto& reply) { reply.upload_window = 0; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.upload_window = kTop; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.stream_share = 0; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.largest_chunk = 3 * kMiB; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.largest_chunk = kTop; }));
  EXPECT_TRUE(Accepted([](auto& reply) { reply.largest_chunk = 0; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.lanes = 3; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.segment_bytes = kGiB + 4096; }));
  EXPECT_FALSE(Accepted([](auto& reply) { reply.segment_bytes = kTop; }));
  EXPECT_NE(ProblemOfReply(reply_, {offered_, 2, false}), "") << "a segment that nobody wanted";
}

TEST_F(CheckReplyTest, LeasedMemory) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, 6 * kGiB, kTop}) {
    EXPECT_FALSE(Accepted([&](auto& reply) { reply.devices[0].leased[0].bytes = bytes; })) << bytes;
  }
  EXPECT_FALSE(Accepted([](auto& reply) {
    reply.devices[0].leased = {{1, 3 * kGiB}, {2, 3 * kGiB}};
  })) << "more than the window";
}

TEST_F(CheckReplyTest, AttributesByWhichTheClientDivides) {
  for (int value : {0, -1, 1 << 20}) {
    EXPECT_FALSE(Accepted([&](auto& reply) { reply.devices[1].attributes[0].value = value; }));
  }
  EXPECT_TRUE(Accepted([](auto& reply) {
    reply.devices[1].attributes[0] = {CU_DEVICE_ATTRIBUTE_WARP_SIZE, CUDA_ERROR_INVALID_VALUE, 0};
  })) << "one that the driver does not know";
}

}  // namespace
}  // namespace longwire::shim
