// Copies whose bytes come ahead of their stream and may be replaced until it gets there.
#include <gtest/gtest.h>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kOne = 11;
constexpr size_t kBytes = 1000;

class Revisable : public ::testing::Test {
 protected:
  Revisable() : target(kBytes * 2) {
    session.CreateStream(kOne);
    session.LoadFunction();
    session.driver.StopStream(1);
    session.Launch(kOne, 1);
  }
  // Of `value` in each byte, to the place-th part of the target.
  uint64_t Copy(uint64_t transfer, size_t place, std::byte value) {
    calls::lwCopyToDevice copy;
    copy.place = Linear(target.data() + place * kBytes, kBytes);
    copy.bytes = kBytes;
    copy.transfer = transfer;
    copy.revisable = true;
    uint64_t position = session.Send(copy, kOne);
    Data(transfer, value);
    return position;
  }
  void Data(uint64_t transfer, std::byte value) {
    std::vector<std::byte> bytes(kBytes, value);
    for (size_t at = 0; at < kBytes; at += 400) {
      calls::lwCopyData data;
      data.transfer = transfer;
      data.offset = at;
      data.data = std::span(bytes).subspan(at, std::min<size_t>(400, kBytes - at));
      session.Send(data);
    }
  }
  void Revise(uint64_t transfer, uint64_t offset, std::vector<std::byte> bytes) {
    calls::lwCopyRevised revised;
    revised.transfer = transfer;
    revised.offset = offset;
    revised.data = bytes;
    session.Send(revised);
  }
  // The stream goes on with what the worker has got of all that was sent.
  void RunWhenAllIsThere() {
    const uint64_t sent = session.sent();
    session.Until([&] { return session.taken() >= sent; }, "all in the worker");
    session.driver.RunStream(1);
  }
  std::vector<std::byte> Part(size_t place) {
    auto begin = target.begin() + static_cast<ptrdiff_t>(place * kBytes);
    return {begin, begin + kBytes};
  }
  static std::vector<std::byte> All(std::byte value) {
    return std::vector<std::byte>(kBytes, value);
  }

  TestSession session;
  std::vector<std::byte> target;
};

TEST_F(Revisable, WhatIsReplacedBeforeTheStreamIsThereCounts) {
  Copy(31, 0, std::byte{1});
  uint64_t position = Copy(32, 1, std::byte{2});
  // Across the pieces in which they came.
  Revise(31, 300, std::vector<std::byte>(600, std::byte{7}));
  Revise(32, 0, All(std::byte{8}));
  RunWhenAllIsThere();
  session.ExpectProgress(kOne, position);
  std::vector<std::byte> first = All(std::byte{1});
  std::fill_n(first.begin() + 300, 600, std::byte{7});
  EXPECT_EQ(first, Part(0));
  EXPECT_EQ(All(std::byte{8}), Part(1));
  EXPECT_TRUE(session.Quiet(wire::DownKind::kPull));
}

TEST_F(Revisable, NothingIsTakenBeforeTheStreamIsThere) {
  uint64_t position = Copy(31, 0, std::byte{1});
  EXPECT_TRUE(session.Quiet(wire::DownKind::kProgress));
  EXPECT_EQ(All(std::byte{0}), Part(0));
  Revise(31, 0, All(std::byte{2}));
  RunWhenAllIsThere();
  session.ExpectProgress(kOne, position);
  Revise(31, 0, All(std::byte{3}));  // too late, and no fault
  session.ExpectProgress(kOne, session.Launch(kOne, 2));
  EXPECT_EQ(All(std::byte{2}), Part(0));
  EXPECT_FALSE(session.over);
}

TEST_F(Revisable, CanBeAskedForAfterAll) {
  Copy(31, 0, std::byte{1});
  uint64_t position = Copy(32, 1, std::byte{2});
  calls::lwCopyPull pull;
  pull.transfer = 31;
  session.Send(pull);
  RunWhenAllIsThere();
  EXPECT_EQ(session.Expect(wire::DownKind::kPull).Number(), 31u);
  Data(31, std::byte{9});
  session.ExpectProgress(kOne, position);
  EXPECT_EQ(All(std::byte{9}), Part(0));
  EXPECT_EQ(All(std::byte{2}), Part(1));
  session.Send(pull);  // of a copy that is over
  EXPECT_TRUE(session.Quiet(wire::DownKind::kPull));
  EXPECT_FALSE(session.over);
}

TEST_F(Revisable, BytesBeyondTheCopyEndTheSession) {
  Copy(31, 0, std::byte{1});
  Revise(31, kBytes - 1, std::vector<std::byte>(2));
  session.Until([&] { return session.over.load(); }, "the session's end");
}

}  // namespace
}  // namespace longwire::worker::testing
