// Copies between the device and a part of the segment that a program of this host shares.
#include "server/worker/transfer/host_segment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;
constexpr uint64_t kPart = HostSegment::kPart;

calls::Place Linear(uint64_t address, uint64_t bytes) {
  calls::Place place;
  place.address = address;
  place.width_bytes = place.pitch = bytes;
  place.rows = place.slices = place.height = 1;
  return place;
}

class HostSegment : public ::testing::Test {
 protected:
  HostSegment() {
    worker().Make(8 * kPart);
    client = wire::SegmentMapping::Map(worker().descriptor(), worker().bytes());
    session.CreateStream(kOne);
  }

  longwire::worker::HostSegment& worker() { return session.session->host_segment(); }

  int32_t Pin(uint64_t offset, uint64_t bytes) {
    calls::lwHostPin pin;
    pin.offset = offset;
    pin.bytes = bytes;
    session.Send(pin);
    return session.Expect(wire::DownKind::kReply).header.code;
  }
  int32_t Unpin(uint64_t offset) {
    calls::lwHostUnpin unpin;
    unpin.offset = offset;
    session.Send(unpin);
    return session.Expect(wire::DownKind::kReply).header.code;
  }
  // Between the segment and `device`; the error that the worker tells.
  int32_t Copy(std::vector<std::byte>& device, const calls::Place& host, bool to_host,
               uint16_t flags = 0) {
    calls::lwCopyPinned copy;
    copy.place = Linear(reinterpret_cast<uint64_t>(device.data()), device.size());
    copy.host = host;
    copy.bytes = device.size();
    copy.to_host = to_host;
    session.Send(copy, kOne, flags);
    return session.Expect(wire::DownKind::kError).header.code;
  }
  void CopyWell(std::vector<std::byte>& device, uint64_t offset, bool to_host) {
    calls::lwCopyPinned copy;
    copy.place = Linear(reinterpret_cast<uint64_t>(device.data()), device.size());
    copy.host = Linear(offset, device.size());
    copy.bytes = device.size();
    copy.to_host = to_host;
    session.ExpectProgress(kOne, session.Send(copy, kOne));
  }

  TestSession session;
  std::unique_ptr<wire::SegmentMapping> client;
};

TEST_F(HostSegment, TheDriverCopiesFromAndToWhatTheClientSees) {
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(Pin(kPart, 2 * kPart), CUDA_SUCCESS);
  std::vector<std::byte> device(300'000);
  std::fill_n(client->data() + kPart + 5, device.size(), std::byte{7});
  CopyWell(device, kPart + 5, false);
  EXPECT_EQ(std::count(device.begin(), device.end(), std::byte{7}), 300'000);
  std::fill(device.begin(), device.end(), std::byte{9});
  CopyWell(device, 3 * kPart - device.size(), true);
  EXPECT_EQ(client->data()[3 * kPart - 1], std::byte{9});
  EXPECT_EQ(client->data()[3 * kPart - device.size()], std::byte{9});
  EXPECT_EQ(session.driver.log(), (std::vector<std::string>{"pin", "upload s1", "download s1"}));
}

TEST_F(HostSegment, ItLiesWhereTheProgramHasRoomOutsideOfWhatIsTaken) {
  EXPECT_EQ(worker().base(), 0u);
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  // The first window is taken, and in the second one the middle. ThreadSanitizer has other uses for
  // lower addresses.
  const wire::Window free[] = {{0x7e9000000000, kGiB}, {0x7ea000000000, 8 * kGiB}};
  const wire::Window taken[] = {free[0], {free[1].base + 2 * kGiB, kGiB}};
  worker().Place(free, taken);
  ASSERT_EQ(worker().base(), free[1].base + 3 * kGiB);
  ASSERT_EQ(Pin(kPart, kPart), CUDA_SUCCESS);
  auto* there = reinterpret_cast<std::byte*>(worker().base() + kPart);
  client->data()[kPart + 9] = std::byte{4};
  EXPECT_EQ(there[9], std::byte{4});
  // What is mapped there by somebody else stays: another segment goes to the window's end.
  TestSession other;
  longwire::worker::HostSegment& second = other.session->host_segment();
  second.Make(2 * kPart);
  second.Place(free, taken);
  EXPECT_EQ(second.base(), free[1].base + 7 * kGiB);
}

TEST_F(HostSegment, ItLiesNotWhereNullPointersLead) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const wire::Window free[] = {{0, 2 * kGiB}};
  worker().Place(free, {});
  EXPECT_EQ(worker().base(), kGiB);
}

TEST_F(HostSegment, WithoutRoomItStaysWhereItIs) {
  const wire::Window free[] = {{0x7e9000000000, 8 * kPart}};
  worker().Place(free, {});
  EXPECT_EQ(worker().base(), 0u);
  EXPECT_EQ(Pin(0, kPart), CUDA_SUCCESS);
}

// Kernels of a driver that puts registered memory elsewhere cannot use the program's pointers.
TEST_F(HostSegment, MemoryThatKernelsReachElsewhereIsNotPinned) {
  const wire::Window free[] = {{0x7e9000000000, uint64_t{4} << 30}};
  worker().Place(free, {});
  ASSERT_NE(worker().base(), 0u);
  session.driver.moves_registered = true;
  EXPECT_EQ(Pin(0, kPart), CUDA_ERROR_NOT_SUPPORTED);
  session.driver.moves_registered = false;
  EXPECT_EQ(Pin(0, kPart), CUDA_SUCCESS);
  EXPECT_EQ(session.driver.log(), (std::vector<std::string>{"pin", "unpin", "pin"}));
}

TEST_F(HostSegment, ACopyStaysWithinItsPart) {
  ASSERT_EQ(Pin(kPart, kPart), CUDA_SUCCESS);
  std::vector<std::byte> device(4096);
  // Neither is it in what is nobody's, nor half in it, nor beyond the segment or its end.
  for (uint64_t offset : {uint64_t{0}, 2 * kPart, kPart - 1, 2 * kPart - 4095}) {
    EXPECT_EQ(Copy(device, Linear(offset, device.size()), false), CUDA_ERROR_INVALID_VALUE)
        << offset;
  }
}

TEST_F(HostSegment, PlacesBeyondTheSegmentAreErrors) {
  ASSERT_EQ(Pin(0, 8 * kPart), CUDA_SUCCESS);
  std::vector<std::byte> device(4096);
  for (uint64_t offset : {8 * kPart - 4095, 8 * kPart, uint64_t{1} << 47, ~uint64_t{0} - 100}) {
    EXPECT_EQ(Copy(device, Linear(offset, device.size()), true), CUDA_ERROR_INVALID_VALUE)
        << offset;
  }
  calls::Place rows = Linear(0, 64);
  rows.rows = 64;
  rows.pitch = kPart;  // the last row lies far outside
  EXPECT_EQ(Copy(device, rows, true), CUDA_ERROR_INVALID_VALUE);
  rows.pitch = 64;
  rows.x_bytes = 8 * kPart;
  EXPECT_EQ(Copy(device, rows, true), CUDA_ERROR_INVALID_VALUE);
  calls::Place few = Linear(0, 100);
  EXPECT_EQ(Copy(device, few, true), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostSegment, NoCapturedCopyUsesIt) {
  ASSERT_EQ(Pin(0, kPart), CUDA_SUCCESS);
  std::vector<std::byte> device(64);
  EXPECT_EQ(Copy(device, Linear(0, 64), true, wire::kCapturing), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostSegment, PartsAreWholeInsideAndApart) {
  EXPECT_EQ(Pin(0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(4096, kPart), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(0, 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(7 * kPart, 2 * kPart), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(~uint64_t{0} / kPart * kPart, kPart), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(Pin(2 * kPart, 2 * kPart), CUDA_SUCCESS);
  EXPECT_EQ(Pin(2 * kPart, kPart), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(3 * kPart, kPart), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(kPart, 2 * kPart), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(4 * kPart, kPart), CUDA_SUCCESS);
  EXPECT_EQ(Unpin(3 * kPart), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostSegment, WhatIsGivenBackIsGone) {
  ASSERT_EQ(Pin(0, kPart), CUDA_SUCCESS);
  client->data()[100] = std::byte{1};
  ASSERT_EQ(Unpin(0), CUDA_SUCCESS);
  EXPECT_EQ(client->data()[100], std::byte{0});
  std::vector<std::byte> device(64);
  EXPECT_EQ(Copy(device, Linear(0, 64), true), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Unpin(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Pin(0, kPart), CUDA_SUCCESS);
}

TEST(WithoutSegment, NothingIsPinnedOrCopied) {
  TestSession session;
  calls::lwHostPin pin;
  pin.bytes = kPart;
  session.Send(pin);
  EXPECT_EQ(session.Expect(wire::DownKind::kReply).header.code, CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace longwire::worker::testing
