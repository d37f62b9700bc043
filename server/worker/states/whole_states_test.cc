// States of several words, on the software device: kernels that run see all of one or nothing, and
// what they write comes as a state.
#include <cstring>
#include <numeric>

#include "server/worker/states/states_fixture.h"
#include "wire/live/mirror_state.h"

namespace longwire::worker::testing {
namespace {

constexpr size_t kWords = 96 << 10;  // of 4 bytes: two parts
constexpr size_t kBytes = 4 * kWords;
constexpr size_t kOut = kBytes;

class WholeStatesTest : public StatesFixture {
 protected:
  WholeStatesTest() : StatesFixture(kBytes) {}
};

TEST_F(WholeStatesTest, AKernelSeesAllOfAStateOrNothing) {
  LaunchKernel("look_at_pairs");
  for (uint32_t state = 1; state <= kStates; ++state) {
    std::ranges::fill(host_, state);
    session_->ExpectProgress(kMirrors, PushState());
  }
  session_->ExpectProgress(kOne, launched_);
  const auto found = Download(kOut, 2);
  EXPECT_GT(found[0], kStates);
  EXPECT_EQ(found[1], 0u) << "of " << found[0] << " looks";
  EXPECT_EQ(Download(0, 64), std::vector<uint32_t>(64, kStates));
}

TEST_F(WholeStatesTest, ALookBringsAllThatHasChangedAndEachOnce) {
  Upload(0, {7, 0, 8});
  Upload(kBytes - 4, {9});
  Look();
  EXPECT_EQ(Received(), 3u);
  EXPECT_EQ(host_[0], 7u);
  EXPECT_EQ(host_[2], 8u);
  EXPECT_EQ(host_.back(), 9u);
  Look();
  EXPECT_EQ(Received(), 0u);
  Upload(4, {1});
  Look();  // a word
  EXPECT_EQ(Received(), 1u);
  EXPECT_EQ(host_[1], 1u);
}

// Two copies are never the same, so the second context takes the bytes.
TEST_F(WholeStatesTest, ALookBringsAStateOfAKernelThatWritesAllTheTime) {
  LaunchKernel("count_in_pairs");
  for (size_t received = 0; received < 40;) {
    Look();
    received += Received();
    ASSERT_LE(host_[0] - host_.back(), 1u) << "the first word is written first";
  }
  shadow_ = host_;
  host_[1] = host_[2] = 1;
  session_->ExpectProgress(kMirrors, PushState());
  session_->ExpectProgress(kOne, launched_);
}

TEST_F(WholeStatesTest, WhatTheDeviceHasChangedAsWellStaysAndIsAConflict) {
  Upload(0, {7});
  host_[0] = 5;
  host_[1] = 6;
  session_->ExpectProgress(kMirrors, PushState());
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].form, wire::PageForm::kConflict);
  EXPECT_EQ(runs[0].offset, 0u);
  EXPECT_EQ(Download(0, 2), (std::vector<uint32_t>{7, 6}));
  // The same value is none.
  Upload(8, {4});
  host_[2] = 4;
  host_[3] = 1;
  session_->ExpectProgress(kMirrors, PushState());
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kMirror));
}

TEST_F(WholeStatesTest, APartIsKeptUntilTheLastOneComes) {
  session_->ExpectProgress(kMirrors, PushWord(0, 1, 1));
  session_->ExpectProgress(kMirrors, PushWord(100, 2, 1));
  session_->ExpectProgress(kMirrors, PushWord(0, 3, 1));
  Look();
  EXPECT_EQ(Received(), 0u);
  EXPECT_EQ(Download(0, 1), std::vector<uint32_t>{0});
  session_->ExpectProgress(kMirrors, PushWord(200, 4, 2));
  EXPECT_EQ(Download(0, 1), std::vector<uint32_t>{3}) << "the newest";
  EXPECT_EQ(Download(400, 1), std::vector<uint32_t>{2});
  EXPECT_EQ(Download(800, 1), std::vector<uint32_t>{4});
}

TEST_F(WholeStatesTest, AnotherPushOrAPullIsABorderForPartsToo) {
  PushWord(0, 1, 1);
  session_->ExpectProgress(kMirrors, PushWord(1, 2, 0));
  EXPECT_EQ(Download(0, 2), (std::vector<uint32_t>{1, 2}));
  PushWord(2, 3, 1);
  calls::lwMirrorPull pull;
  pull.mirror = kMirror;
  pull.bytes = kBytes;
  session_->ExpectProgress(kMirrors, session_->Send(pull, kMirrors));
  EXPECT_EQ(Download(8, 1), std::vector<uint32_t>{3});
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kMirror)) << "none of it comes back";
}

TEST_F(WholeStatesTest, PartsOfAMirrorThatEndsEndWithIt) {
  PushWord(0, 1, 1);
  calls::lwMirrorRemove remove;
  remove.mirror = kMirror;
  session_->Send(remove, kMirrors);
  AddMirror();
  session_->ExpectProgress(kMirrors, PushWord(1, 2, 2));
  EXPECT_EQ(Download(0, 2), (std::vector<uint32_t>{0, 2}));
}

TEST_F(WholeStatesTest, RefusesWhatCannotBe) {
  auto expect = [&](const calls::lwMirrorState& push, int code) {
    PushWord(0, 1, 1);  // goes with it
    session_->Send(push, kMirrors);
    EXPECT_EQ(session_->Expect(wire::DownKind::kError).header.code, code);
  };
  std::vector<std::byte> delta = DeltaOf(1, 2, wire::PageForm::kMasked);
  calls::lwMirrorState push;
  push.delta = delta;
  push.last = true;
  expect(push, CUDA_ERROR_INVALID_HANDLE);
  push.mirror = kMirror;
  push.delta = std::span(delta).first(delta.size() - 1);
  expect(push, CUDA_ERROR_INVALID_VALUE);
  const std::vector<std::byte> whole = DeltaOf(1, 2, wire::PageForm::kWhole);
  push.delta = whole;
  expect(push, CUDA_ERROR_INVALID_VALUE);
  std::vector<std::byte> far = delta;
  far[6] = std::byte{1};  // beyond the mirror
  push.delta = far;
  expect(push, CUDA_ERROR_INVALID_VALUE);
  calls::lwMirrorLook look;
  look.mirror.push_back(kMirror);
  look.bytes.push_back(kBytes + 1);
  look.whole = true;
  session_->Send(look, kMirrors);
  EXPECT_EQ(session_->Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Download(0, 2), (std::vector<uint32_t>{0, 0})) << "nothing was stored";
  session_->ExpectProgress(kMirrors, PushWord(1, 2, 2));
  EXPECT_EQ(Download(0, 2), (std::vector<uint32_t>{0, 2}));
}

TEST_F(WholeStatesTest, AStateHasAMostOfBytes) {
  const uint32_t parts = (wire::kStateBytes >> 10) / (kBytes >> 10) + 2;
  for (uint32_t part = 1; part <= parts; ++part) {
    std::ranges::fill(host_, part * 0x01010101);
    PushState(wire::PageForm::kMasked, 1);
  }
  EXPECT_EQ(session_->Expect(wire::DownKind::kError).header.code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_FALSE(session_->over);
}

// There is no second context.
class NoRoomTest : public WholeStatesTest {
 protected:
  void Change(DriverTable& driver) override {
    driver.cuCtxCreate_v4 = [](CUcontext*, CUctxCreateParams*, unsigned, CUdevice) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    };
  }
};

// Under MPS.
class TogetherTest : public WholeStatesTest {
 protected:
  void Change(DriverTable& driver) override {
    static decltype(driver.cuDeviceGetAttribute) others;
    others = driver.cuDeviceGetAttribute;
    driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute asked, CUdevice device) {
      const CUresult result = others(value, asked, device);
      if (asked == CU_DEVICE_ATTRIBUTE_MPS_ENABLED) *value = 1;
      return result;
    };
  }
};

TEST_F(TogetherTest, WithoutTurnsAStateWaits) {
  std::ranges::fill(host_, kStates);
  session_->ExpectProgress(kMirrors, PushState());
  EXPECT_EQ(OnDevice(0), 0u);
  LaunchKernel("look_at_pairs");
  session_->ExpectProgress(kOne, launched_);
  EXPECT_EQ(OnDevice(0), kStates);
}

TEST_F(NoRoomTest, AStateWaitsForTheNextLaunch) {
  std::ranges::fill(host_, kStates);
  session_->ExpectProgress(kMirrors, PushState());
  EXPECT_EQ(OnDevice(0), 0u);
  // The kernel ends as soon as it sees the state.
  LaunchKernel("look_at_pairs");
  session_->ExpectProgress(kOne, launched_);
  EXPECT_EQ(Download(kOut, 2), (std::vector<uint32_t>{1, 0}));
}

TEST_F(NoRoomTest, OrForTheNextPull) {
  host_[0] = 1;
  host_[5] = 2;
  session_->ExpectProgress(kMirrors, PushState());
  host_[5] = 3;
  session_->ExpectProgress(kMirrors, PushState());  // goes with the first
  EXPECT_EQ(OnDevice(0), 0u);
  calls::lwMirrorPull pull;
  pull.mirror = kMirror;
  pull.bytes = kBytes;
  session_->ExpectProgress(kMirrors, session_->Send(pull, kMirrors));
  EXPECT_EQ(OnDevice(0), 1u);
  EXPECT_EQ(OnDevice(5), 3u);
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kMirror)) << "none of it comes back";
}

TEST_F(NoRoomTest, WorkThatWaitsForAStateIsABorder) {
  calls::lwEventCreate create;
  create.event = 21;
  session_->Send(create);
  std::ranges::fill(host_, kStates);
  PushState();
  calls::lwEventRecord record;
  record.event = 21;
  record.version = 1;
  session_->Send(record, kMirrors);
  calls::lwStreamWaitEvent wait;
  wait.event = 21;
  wait.version = 1;
  session_->Send(wait, kOne);
  LaunchKernel("look_at_pairs");
  session_->ExpectProgress(kOne, launched_);
  EXPECT_EQ(Download(kOut, 2), (std::vector<uint32_t>{1, 0}));
}

TEST_F(NoRoomTest, ALookBringsWhatDoesNotNeedIt) {
  Upload(0, {7, 0, 8});
  Look();
  EXPECT_EQ(Received(), 2u);
  LaunchKernel("count_in_pairs");
  Look();  // perhaps nothing
  Received();
  session_->ExpectProgress(kMirrors, PushWord(1, 1, 0));
  session_->ExpectProgress(kOne, launched_);
}

}  // namespace
}  // namespace longwire::worker::testing
