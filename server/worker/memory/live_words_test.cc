// Words that program and device exchange while work runs. The fake driver's device memory is memory
// of the test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "server/worker/testing/test_session.h"
#include "wire/live/changed_words.h"
#include "wire/page_delta.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 11, kWork = 12, kMirror = 5, kTicket = 70;
constexpr size_t kWorkIndex = 2;  // as the fake driver counts
constexpr size_t kBytes = 3 * 4096;
constexpr size_t kFlag = 8, kOther = 1000;  // as words

class LiveWordsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    session_.CreateStream(kStream);
    session_.CreateStream(kWork);
    calls::lwMirrorAdd add;
    add.mirror = kMirror;
    add.address = reinterpret_cast<uint64_t>(device_.data());
    add.bytes = kBytes;
    session_.Send(add, kStream);
    Look();  // without an answer, for there is no staging yet
    calls::lwMirrorPull pull;
    pull.mirror = kMirror;
    pull.bytes = kBytes;
    session_.ExpectProgress(kStream, session_.Send(pull, kStream));
  }

  void Push(size_t word, uint64_t was, uint64_t is) {
    wire::ChangedWord changed;
    changed.offset = 8 * word;
    changed.bytes = 8;
    std::memcpy(changed.was.data(), &was, 8);
    std::memcpy(changed.is.data(), &is, 8);
    std::vector<std::byte> delta;
    wire::AppendWord(changed, &delta);
    calls::lwMirrorPush push;
    push.mirror = kMirror;
    push.delta = delta;
    session_.ExpectProgress(kStream, session_.Send(push, kStream));
  }
  void Look(bool independent = false) {
    calls::lwMirrorLook look;
    look.independent = independent;
    look.mirror.push_back(kMirror);
    look.bytes.push_back(kBytes);
    if (independent) look.offset.push_back(0);
    session_.ExpectProgress(kStream, session_.Send(look, kStream));
  }
  // The next delta's runs.
  std::vector<wire::DeltaRun> Delta() {
    record_ = session_.Expect(wire::DownKind::kMirror);
    std::vector<wire::DeltaRun> runs;
    EXPECT_EQ(wire::ReadDelta(std::span(record_.payload).subspan(8), kBytes, &runs),
              wire::WireResult::kOk);
    return runs;
  }
  void ExpectWord(size_t word, int was, int is) {
    const auto runs = Delta();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].form, wire::PageForm::kWord);
    EXPECT_EQ(runs[0].offset, 8 * word);
    EXPECT_EQ(runs[0].was[0], static_cast<std::byte>(was));
    EXPECT_EQ(runs[0].bytes[0], static_cast<std::byte>(is));
  }
  void ExpectConflict(size_t word) {
    const auto runs = Delta();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].form, wire::PageForm::kConflict);
    EXPECT_EQ(runs[0].offset / 8, word);
  }
  void ExpectNothing() { EXPECT_TRUE(session_.Quiet(wire::DownKind::kMirror)); }

  TestSession session_;
  alignas(64) std::array<uint64_t, kBytes / 8> device_{};
  DownRecord record_;
};

TEST_F(LiveWordsTest, ALookSendsOneWordAndEachOnce) {
  Look();
  ExpectNothing();
  device_[kFlag] = 1;
  Look();
  ExpectWord(kFlag, 0, 1);
  Look();
  ExpectNothing();
  device_[kOther] = 2;
  Look();
  ExpectWord(kOther, 0, 2);
}

TEST_F(LiveWordsTest, MoreThanAWordIsLeftForThePull) {
  device_[kFlag] = device_[kOther] = 1;
  Look();
  ExpectNothing();
  calls::lwMirrorPull pull;
  pull.mirror = kMirror;
  pull.bytes = kBytes;
  session_.Send(pull, kStream);
  EXPECT_EQ(Delta().size(), 2u);
}

TEST_F(LiveWordsTest, APushedWordIsStoredAndDoesNotComeBack) {
  Push(kFlag, 0, 0x0102030405060708);
  EXPECT_EQ(device_[kFlag], 0x0102030405060708u);
  Look();
  ExpectNothing();
}

TEST_F(LiveWordsTest, WhatTheDeviceHasChangedAsWellIsAConflict) {
  device_[kFlag] = 9;
  Push(kFlag, 0, 1);
  ExpectConflict(kFlag);
  // It was sent already, and the client had not seen it.
  device_[kOther] = 9;
  Look();
  ExpectWord(kOther, 0, 9);
  Push(kOther, 0, 1);
  ExpectConflict(kOther);
  // The same value is none.
  device_[1] = 4;
  Push(1, 0, 4);
  ExpectNothing();
}

TEST_F(LiveWordsTest, WhereWordsAreIndependentALookSendsAll) {
  for (size_t word : {kFlag, kOther, kBytes / 8 - 1}) device_[word] = word;
  Look(true);
  std::vector<uint64_t> offsets;
  for (int deltas = 0; offsets.size() < 3 && deltas < 3; ++deltas) {
    for (const wire::DeltaRun& run : Delta()) {
      EXPECT_EQ(run.form, wire::PageForm::kWord);
      offsets.push_back(run.offset);
    }
  }
  EXPECT_EQ(offsets, (std::vector<uint64_t>{8 * kFlag, 8 * kOther, kBytes - 8}));
  Look(true);
  ExpectNothing();
}

// What the program has, and what the device is to have.
TEST_F(LiveWordsTest, ManyPushedWordsAreStored) {
  std::vector<uint64_t> now(kBytes / 8), shadow(kBytes / 8);
  for (size_t word = 0; word < now.size(); word += word % 7 + 1) now[word] = ~uint64_t{word};
  now[kFlag] = 5;  // the first half
  shadow[kFlag] = 0;
  device_[kFlag] = uint64_t{9} << 32;  // the second one is the device's
  std::vector<std::byte> delta;
  wire::AppendWords(std::as_bytes(std::span(now)), reinterpret_cast<std::byte*>(shadow.data()), 0,
                    reinterpret_cast<uint64_t>(device_.data()), SIZE_MAX, &delta);
  calls::lwMirrorPush push;
  push.mirror = kMirror;
  push.delta = delta;
  session_.ExpectProgress(kStream, session_.Send(push, kStream));
  EXPECT_TRUE(std::ranges::is_sorted(session_.driver.stores, std::greater{}));
  EXPECT_EQ(device_[kFlag], uint64_t{9} << 32 | 5);
  for (size_t word = 0; word < now.size(); ++word) {
    if (word != kFlag) EXPECT_EQ(device_[word], now[word]) << word;
  }
  Look(true);  // only the device's half comes back
  const auto runs = Delta();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].offset, 8 * kFlag);
  ExpectNothing();
}

TEST_F(LiveWordsTest, OneConflictAmongManyWordsIsFound) {
  std::vector<uint64_t> now(kBytes / 8, 3), shadow(kBytes / 8);
  device_[kOther] = 4;
  std::vector<std::byte> delta;
  wire::AppendWords(std::as_bytes(std::span(now)), reinterpret_cast<std::byte*>(shadow.data()), 0,
                    reinterpret_cast<uint64_t>(device_.data()), SIZE_MAX, &delta);
  calls::lwMirrorPush push;
  push.mirror = kMirror;
  push.delta = delta;
  session_.Send(push, kStream);
  ExpectConflict(kOther);
}

// Its bytes may be older than the word that was sent.
TEST_F(LiveWordsTest, APullBehindWorkDoesNotCountAfterAWord) {
  session_.driver.StopStream(kWorkIndex);
  calls::lwMirrorPull pull;
  pull.mirror = kMirror;
  pull.bytes = kBytes;
  pull.ticket = kTicket;
  const uint64_t position = session_.Send(pull, kWork);
  device_[kFlag] = 1;
  Look();
  ExpectWord(kFlag, 0, 1);
  session_.driver.RunStream(kWorkIndex);
  session_.ExpectProgress(kWork, position);
  ExpectNothing();
}

TEST_F(LiveWordsTest, RefusesWhatCannotBe) {
  auto expect = [&](int code) {
    EXPECT_EQ(session_.Expect(wire::DownKind::kError).header.code, code);
  };
  calls::lwMirrorLook look;
  look.mirror.push_back(kMirror);
  look.bytes.push_back(kBytes + 1);
  session_.Send(look, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  look.mirror.push_back(kMirror);
  session_.Send(look, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  wire::ChangedWord changed;
  changed.offset = 4;  // not aligned
  changed.bytes = 8;
  std::vector<std::byte> delta;
  wire::AppendWord(changed, &delta);
  calls::lwMirrorPush push;
  push.mirror = kMirror;
  push.delta = delta;
  session_.Send(push, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  changed.offset = 8;
  delta.clear();
  wire::AppendWord(changed, &delta);
  wire::AppendWord(changed, &delta);  // twice the same, not ascending
  push.delta = delta;
  session_.Send(push, kStream);
  expect(CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(session_.over);
}

}  // namespace
}  // namespace longwire::worker::testing
