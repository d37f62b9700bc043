// States of more memory than is copied, which the software device compares: what a kernel has
// changed comes as a whole, and nothing else.
#include <cstring>

#include "server/worker/states/states_fixture.h"
#include "wire/limits.h"
#include "wire/live/mirror_state.h"

namespace longwire::worker::testing {
namespace {

constexpr size_t kBytes = size_t{8} << 20;
constexpr uint64_t kSmall = 40;  // mirrors beside it, which begin and end anywhere

class ComparedStatesTest : public StatesFixture {
 protected:
  ComparedStatesTest() : StatesFixture(kBytes) {}

  static uint64_t SmallBytes(uint64_t i) { return 1 + 7 * i; }
  uint64_t SmallOffset(uint64_t i) const { return bytes_ + 64 + 384 * i + i % 16; }
  void AddSmall() {
    for (uint64_t i = 0; i < kSmall; ++i) {
      calls::lwMirrorAdd add;
      add.mirror = 100 + i;
      add.address = address_ + SmallOffset(i);
      add.bytes = SmallBytes(i);
      session_->Send(add, kMirrors);
      look_.mirror.push_back(add.mirror);
      look_.bytes.push_back(add.bytes);
    }
  }
  void LookAtAll() {
    calls::lwMirrorLook look = look_;
    look.mirror.push_back(kMirror);
    look.bytes.push_back(bytes_);
    look.whole = true;
    session_->ExpectProgress(kMirrors, session_->Send(look, kMirrors));
  }
  // What has come of the small ones, as (mirror, bytes).
  std::vector<std::pair<uint64_t, uint64_t>> SmallChanges() {
    std::vector<std::pair<uint64_t, uint64_t>> changes;
    while (auto record = session_->Take(wire::DownKind::kMirror)) {
      std::vector<wire::DeltaRun> runs;
      const uint64_t mirror = record->Number();
      if (record->payload.size() == 8) continue;  // the answer's end
      EXPECT_EQ(
          wire::ReadDelta(std::span(record->payload).subspan(8), SmallBytes(mirror - 100), &runs),
          wire::WireResult::kOk);
      uint64_t bytes = 0;
      for (const wire::DeltaRun& run : runs) bytes += run.bytes.size();
      changes.emplace_back(mirror, bytes);
    }
    std::ranges::sort(changes);
    return changes;
  }
  void Fill(uint64_t offset, uint64_t bytes, uint8_t value) {
    calls::lwMemset set;
    set.address = address_ + offset;
    set.pitch = set.width = bytes;
    set.element_bytes = 1;
    set.rows = 1;
    set.value = value;
    session_->ExpectProgress(kOne, session_->Send(set, kOne));
  }

  calls::lwMirrorLook look_;
};

TEST_F(ComparedStatesTest, ALookBringsAllThatHasChangedAndEachOnce) {
  Upload(0, {7, 0, 8});
  Upload(kBytes / 2, {5});
  Upload(kBytes - 4, {9});
  LookAtAll();
  EXPECT_EQ(Received(), 4u);
  EXPECT_EQ(host_[0], 7u);
  EXPECT_EQ(host_[2], 8u);
  EXPECT_EQ(host_[kBytes / 8], 5u);
  EXPECT_EQ(host_.back(), 9u);
  LookAtAll();
  EXPECT_EQ(Received(), 0u);
  Upload(4, {1});
  LookAtAll();
  EXPECT_EQ(Received(), 1u);
  EXPECT_EQ(host_[1], 1u);
}

TEST_F(ComparedStatesTest, WhatHasNoRoomAtFirstComesAsAWholeToo) {
  Fill(0, kBytes, 0x11);
  LookAtAll();
  Received();
  EXPECT_EQ(host_, std::vector<uint32_t>(kBytes / 4, 0x11111111));
  LookAtAll();
  EXPECT_EQ(Received(), 0u);
}

// Whatever way the worker learned of it.
TEST_F(ComparedStatesTest, AValueThatComesBackIsAChange) {
  const auto change = [&](uint32_t value) {
    Upload(4096, {value});
    LookAtAll();
    return Received();
  };
  EXPECT_EQ(change(1), 1u);
  session_->ExpectProgress(kMirrors, PushWord(1024, 3, 0));
  EXPECT_EQ(change(1), 1u) << "behind a push";
  host_ = shadow_ = std::vector<uint32_t>(kBytes / 4);
  host_[1024] = host_[9] = 4;
  session_->ExpectProgress(kMirrors, PushState());
  EXPECT_EQ(change(1), 1u) << "behind a state";
  Upload(4096, {6});
  calls::lwMirrorPull pull;
  pull.mirror = kMirror;
  pull.bytes = kBytes;
  session_->ExpectProgress(kMirrors, session_->Send(pull, kMirrors));
  EXPECT_EQ(Received(), 1u);
  EXPECT_EQ(change(1), 1u) << "behind a pull";
}

TEST_F(ComparedStatesTest, WhatTheProgramHasWrittenDoesNotComeBack) {
  std::fill_n(host_.begin(), kBytes / 16, 3);
  session_->ExpectProgress(kMirrors, PushState());
  LookAtAll();
  EXPECT_EQ(Received(), 0u);
  Upload(4, {5});
  LookAtAll();
  EXPECT_EQ(Received(), 1u);
}

TEST_F(ComparedStatesTest, ManySmallRangesComeByTheirOwnBytes) {
  AddSmall();
  LookAtAll();
  EXPECT_EQ(SmallChanges().size(), 0u);
  Fill(SmallOffset(0) - 1, 3, 1);  // one byte is the mirror's
  Fill(SmallOffset(9), SmallBytes(9) + 1, 2);
  Fill(SmallOffset(17) + SmallBytes(17), 5, 3);  // behind it
  LookAtAll();
  using Changes = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(SmallChanges(), (Changes{{100, 1}, {109, SmallBytes(9)}}));
  LookAtAll();
  EXPECT_EQ(SmallChanges(), Changes{});
}

TEST_F(ComparedStatesTest, MirrorsMayComeAndGo) {
  LookAtAll();
  AddSmall();
  Fill(SmallOffset(3), 1, 1);
  LookAtAll();
  EXPECT_EQ(SmallChanges().size(), 1u);
  for (uint64_t i = 0; i < kSmall; ++i) {
    calls::lwMirrorRemove remove;
    remove.mirror = 100 + i;
    session_->Send(remove, kMirrors);
  }
  look_ = {};
  Upload(0, {1});
  LookAtAll();
  EXPECT_EQ(Received(), 1u);
  AddSmall();
  LookAtAll();
  EXPECT_EQ(SmallChanges().size(), 1u) << "it is not zero any more";
}

// Where all of it is compared in one turn.
TEST_F(ComparedStatesTest, AStateComesOfAKernelThatWritesAllTheTime) {
  LaunchKernel("count_in_pairs");
  for (size_t received = 0; received < 20;) {
    LookAtAll();
    received += Received();
    ASSERT_LE(host_[0] - host_.back(), 1u) << "the first word is written first";
  }
  session_->ExpectProgress(kMirrors, PushWord(1, 1, 0));
  session_->ExpectProgress(kOne, launched_);
}

TEST_F(ComparedStatesTest, RefusesWhatCannotBe) {
  const auto expect = [&](const calls::lwMirrorLook& look, int code) {
    session_->Send(look, kMirrors);
    EXPECT_EQ(session_->Expect(wire::DownKind::kError).header.code, code);
  };
  calls::lwMirrorLook look;
  look.whole = true;
  look.mirror = {kMirror};
  look.bytes = {kBytes + 1};
  expect(look, CUDA_ERROR_INVALID_VALUE);
  look.bytes = {wire::kComparedBytes + 1};
  expect(look, CUDA_ERROR_INVALID_VALUE);
  look.mirror = {kMirror, kMirror};
  look.bytes = {UINT64_MAX, UINT64_MAX};
  expect(look, CUDA_ERROR_INVALID_VALUE);
  look.mirror.assign(wire::kComparedMirrors + 1, kMirror);
  look.bytes.assign(wire::kComparedMirrors + 1, 8);
  expect(look, CUDA_ERROR_INVALID_VALUE);
  Upload(0, {1});
  LookAtAll();
  EXPECT_EQ(Received(), 1u);
}

// There is no room for a second copy.
class NoShadowsTest : public ComparedStatesTest {
 protected:
  void Change(DriverTable& driver) override {
    static decltype(driver.cuMemAlloc_v2) others;
    others = driver.cuMemAlloc_v2;
    driver.cuMemAlloc_v2 = [](CUdeviceptr* at, size_t bytes) {
      return bytes == kBytes ? CUDA_ERROR_OUT_OF_MEMORY : others(at, bytes);
    };
  }
};

TEST_F(NoShadowsTest, ChangesWaitForThePull) {
  Upload(0, {7, 0, 8});
  LookAtAll();
  EXPECT_EQ(Received(), 0u);
  host_[100] = host_[200] = 1;
  session_->ExpectProgress(kMirrors, PushState());
  EXPECT_EQ(OnDevice(200), 1u) << "states go there as before";
  calls::lwMirrorPull pull;
  pull.mirror = kMirror;
  pull.bytes = kBytes;
  session_->ExpectProgress(kMirrors, session_->Send(pull, kMirrors));
  EXPECT_EQ(Received(), 2u);
}

}  // namespace
}  // namespace longwire::worker::testing
