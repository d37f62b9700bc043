// Mirrored memory: what the program changed reaches the device, what the device changed comes back,
// and nothing else. The fake driver's device memory is memory of the test.
#include <gtest/gtest.h>

#include <cstring>

#include "server/worker/testing/test_session.h"
#include "wire/page_delta.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 11, kMirror = 5;
constexpr size_t kBytes = 3 * 4096 + 100;
using Bytes = std::vector<std::byte>;

struct Mirrored {
  explicit Mirrored(size_t bytes = kBytes) : device(bytes), host(bytes), shadow(bytes) {
    session.CreateStream(kStream);
    calls::lwMirrorAdd add;
    add.mirror = kMirror;
    add.address = reinterpret_cast<uint64_t>(device.data());
    add.bytes = device.size();
    session.Send(add, kStream);
  }

  // What the host changed since the last time.
  uint64_t Push() {
    Bytes delta;
    wire::AppendDelta(host, shadow.data(), 0, wire::PageForm::kMasked, SIZE_MAX, &delta);
    calls::lwMirrorPush push;
    push.mirror = kMirror;
    push.delta = delta;
    return session.Send(push, kStream);
  }

  uint64_t Pull(uint64_t bytes) {
    calls::lwMirrorPull pull;
    pull.mirror = kMirror;
    pull.bytes = bytes;
    return session.Send(pull, kStream);
  }

  // The runs of the next delta that comes.
  std::vector<wire::DeltaRun> Changes() {
    record = session.Expect(wire::DownKind::kMirror);
    wire::Reader reader(record.payload);
    uint64_t mirror = 0;
    EXPECT_EQ(reader.U64(&mirror), wire::WireResult::kOk);
    EXPECT_EQ(mirror, kMirror);
    std::vector<wire::DeltaRun> runs;
    EXPECT_EQ(wire::ReadDelta(std::span(record.payload).subspan(8), device.size(), &runs),
              wire::WireResult::kOk);
    return runs;
  }

  TestSession session;
  Bytes device, host, shadow;
  DownRecord record;
};

TEST(Mirror, BothWaysByteByByte) {
  Mirrored mirrored;
  mirrored.host[7] = mirrored.host[4096] = std::byte{1};
  mirrored.device[8] = std::byte{9};  // the device's, beside the host's
  mirrored.session.ExpectProgress(kStream, mirrored.Push());
  EXPECT_EQ(mirrored.device[7], std::byte{1});
  EXPECT_EQ(mirrored.device[4096], std::byte{1});
  EXPECT_EQ(mirrored.device[8], std::byte{9});
  mirrored.device[kBytes - 1] = std::byte{3};
  uint64_t pulled = mirrored.Pull(kBytes);
  auto runs = mirrored.Changes();
  ASSERT_EQ(runs.size(), 2u) << "what came from the host does not come back";
  EXPECT_EQ(runs[0].offset, 8u);
  EXPECT_EQ(runs[0].bytes[0], std::byte{9});
  EXPECT_EQ(runs[1].offset, kBytes - 1);
  mirrored.session.ExpectProgress(kStream, pulled);
  mirrored.session.ExpectProgress(kStream, mirrored.Pull(kBytes));
  EXPECT_TRUE(mirrored.session.Quiet(wire::DownKind::kMirror)) << "it was sent already";
}

TEST(Mirror, OnlyAsMuchAsWasAskedFor) {
  Mirrored mirrored;
  mirrored.device[100] = mirrored.device[9000] = std::byte{1};
  mirrored.Pull(4096);
  auto runs = mirrored.Changes();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].offset, 100u);
}

TEST(Mirror, RefusesWhatCannotBe) {
  Mirrored mirrored;
  auto expect = [&](int code) {
    EXPECT_EQ(mirrored.session.Expect(wire::DownKind::kError).header.code, code);
  };
  mirrored.Pull(kBytes + 1);
  expect(CUDA_ERROR_INVALID_VALUE);
  calls::lwMirrorAdd add;
  add.mirror = kMirror;
  add.address = 0x1000;
  add.bytes = 4096;
  mirrored.session.Send(add, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  add.mirror = 6;
  add.bytes = uint64_t{1} << 60;
  mirrored.session.Send(add, kStream);
  expect(CUDA_ERROR_OUT_OF_MEMORY);
  calls::lwMirrorPush push;
  push.mirror = 77;
  mirrored.session.Send(push, kStream);
  expect(CUDA_ERROR_INVALID_HANDLE);
  // A page behind the end, and something that is no delta.
  Bytes page(4096, std::byte{1}), zeros(4096), delta;
  wire::AppendDelta(page, zeros.data(), 4 * 4096, wire::PageForm::kWhole, SIZE_MAX, &delta);
  push.mirror = kMirror;
  push.delta = delta;
  mirrored.session.Send(push, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  push.delta = std::span(delta).first(9);
  mirrored.session.Send(push, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  calls::lwMirrorRemove remove;
  remove.mirror = kMirror;
  mirrored.session.Send(remove, kStream);
  mirrored.session.Send(remove, kStream);
  expect(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_FALSE(mirrored.session.over);
}

}  // namespace
}  // namespace longwire::worker::testing
