// Mirrored memory: what the program changed reaches the device, what the device changed comes back,
// and nothing else. The fake driver's device memory is memory of the test.
#include <gtest/gtest.h>

#include <cstring>

#include "server/worker/testing/test_session.h"
#include "wire/page_delta.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 11, kMirror = 5;
constexpr uint64_t kWork = 12, kTicket = 70;  // a stream of the program's
constexpr size_t kWorkIndex = 2;              // as the fake driver counts
constexpr size_t kBytes = 3 * 4096 + 100;
using Bytes = std::vector<std::byte>;

struct Mirrored {
  explicit Mirrored(size_t bytes = kBytes) : device(bytes), host(bytes), shadow(bytes) {
    session.CreateStream(kStream);
    session.CreateStream(kWork);
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
    pull.ticket = 0;
    return session.Send(pull, kStream);
  }

  uint64_t PullBehindWork(uint64_t ticket) {
    calls::lwMirrorPull pull;
    pull.mirror = kMirror;
    pull.bytes = kBytes;
    pull.ticket = ticket;
    return session.Send(pull, kWork);
  }

  // The ticket comes, and after it the completion of the work.
  void ExpectServed(uint64_t ticket, uint64_t position) {
    record = session.Expect(wire::DownKind::kMirror);
    EXPECT_EQ(record.Number(), ticket);
    EXPECT_EQ(record.payload.size(), 8u) << "a ticket comes with nothing";
    EXPECT_LT(record.order, session.ExpectProgress(kWork, position).order);
  }

  void ExpectNotServed(uint64_t position) {
    session.ExpectProgress(kWork, position);
    EXPECT_TRUE(session.Quiet(wire::DownKind::kMirror));
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

TEST(Mirror, APullBehindWorkComesBeforeTheWorksEnd) {
  Mirrored mirrored;
  mirrored.session.driver.StopStream(kWorkIndex);
  uint64_t position = mirrored.PullBehindWork(kTicket);
  EXPECT_TRUE(mirrored.session.Quiet(wire::DownKind::kMirror));
  mirrored.device[8] = std::byte{9};  // the work's
  mirrored.session.driver.RunStream(kWorkIndex);
  auto runs = mirrored.Changes();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].offset, 8u);
  mirrored.ExpectServed(kTicket, position);
  // With no changes, too.
  mirrored.ExpectServed(kTicket + 1, mirrored.PullBehindWork(kTicket + 1));
}

// Its bytes are not those that the shadow stands for.
TEST(Mirror, APullBehindWorkDoesNotCountWhenAnotherExchangeComesBetween) {
  for (bool push : {true, false}) {
    Mirrored mirrored;
    mirrored.session.ExpectProgress(kStream,
                                    mirrored.Pull(kBytes));  // there is staging from now on
    mirrored.session.driver.StopStream(kWorkIndex);
    uint64_t position = mirrored.PullBehindWork(kTicket);
    mirrored.host[7] = std::byte{1};
    uint64_t other = push ? mirrored.Push() : mirrored.Pull(kBytes);
    mirrored.session.ExpectProgress(kStream, other);
    mirrored.session.driver.RunStream(kWorkIndex);
    SCOPED_TRACE(push);
    mirrored.ExpectNotServed(position);
    mirrored.ExpectServed(kTicket + 1, mirrored.PullBehindWork(kTicket + 1));
  }
}

// The other's copy is made at once, before the log thread has the call behind it.
TEST(Mirror, NorWhenTheOtherIsStillBeingIssued) {
  for (bool push : {true, false}) {
    Mirrored mirrored;
    TestSession& session = mirrored.session;
    session.ExpectProgress(kStream, mirrored.Pull(kBytes));  // there is staging from now on
    session.driver.StopStream(kWorkIndex);
    uint64_t position = mirrored.PullBehindWork(kTicket);
    session.Until([&] { return session.driver.IndexOf("download s2") >= 0; }, "queued");
    session.driver.hold_copies = true;
    mirrored.host[7] = std::byte{1};
    size_t log = session.driver.log().size();
    uint64_t other = push ? mirrored.Push() : mirrored.Pull(kBytes);
    session.Until([&] { return session.driver.log().size() > log; }, "copied");
    mirrored.device[8] = std::byte{9};  // the work's, which the other has not seen
    session.driver.RunStream(kWorkIndex);
    SCOPED_TRACE(push);
    EXPECT_TRUE(session.Quiet(wire::DownKind::kMirror));
    session.driver.hold_copies = false;
    session.ExpectProgress(kStream, other);
    mirrored.ExpectNotServed(position);
    uint64_t next = mirrored.PullBehindWork(kTicket + 1);
    auto runs = mirrored.Changes();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].offset, 8u);
    mirrored.ExpectServed(kTicket + 1, next);
  }
}

TEST(Mirror, OfTwoPullsBehindWorkTheFirstCounts) {
  Mirrored mirrored;
  mirrored.session.driver.StopStream(kWorkIndex);
  mirrored.PullBehindWork(kTicket);
  uint64_t second = mirrored.PullBehindWork(kTicket + 1);
  mirrored.session.Until([&] { return mirrored.session.taken() > second; }, "both in the worker");
  EXPECT_TRUE(mirrored.session.Quiet(wire::DownKind::kMirror));
  mirrored.session.driver.RunStream(kWorkIndex);
  mirrored.ExpectServed(kTicket, second);  // both completions may be reported at once
  EXPECT_TRUE(mirrored.session.Quiet(wire::DownKind::kMirror));
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
