// States of several words, on the software device: kernels that run see all of one or nothing, and
// what they write comes as a state.
#include <cstring>
#include <numeric>

#include "server/worker/testing/software_session.h"
#include "wire/live/mirror_state.h"
#include "wire/page_delta.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kMirrors = 23, kMirror = 5;
constexpr size_t kWords = 96 << 10;  // of 4 bytes: two parts
constexpr size_t kBytes = 4 * kWords;
constexpr size_t kOut = kBytes;  // offset behind the mirror: what the kernel found
constexpr uint32_t kStates = 12;

// look_at_pairs: reads the first and then the last word until the first one is `last`; counts how
// often the last one was older. count_in_pairs: the same number goes to the first word and then to
// the last one, ever larger, until the second word is not 0.
constexpr char kKernels[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry look_at_pairs(.param .u64 data, .param .u64 bytes, .param .u64 out,
                              .param .u32 last)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [data];
  ld.param.u64 %d1, [bytes];
  ld.param.u64 %d2, [out];
  ld.param.u32 %r0, [last];
  add.u64 %d3, %d0, %d1;
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
again:
  ld.volatile.global.u32 %r3, [%d0];
  ld.volatile.global.u32 %r4, [%d3+-4];
  add.u32 %r1, %r1, 1;
  setp.ge.u32 %p, %r4, %r3;
  @%p bra whole;
  add.u32 %r2, %r2, 1;
whole:
  setp.lt.u32 %p, %r3, %r0;
  @%p bra again;
  st.global.u32 [%d2], %r1;
  st.global.u32 [%d2+4], %r2;
  ret;
}
.visible .entry count_in_pairs(.param .u64 data, .param .u64 bytes, .param .u64 out,
                               .param .u32 last)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [data];
  ld.param.u64 %d1, [bytes];
  add.u64 %d3, %d0, %d1;
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [%d0], %r1;
  st.volatile.global.u32 [%d3+-4], %r1;
  ld.volatile.global.u32 %r2, [%d0+4];
  setp.eq.u32 %p, %r2, 0;
  @%p bra again;
  ret;
}
)";

class WholeStatesTest : public SoftwareSession {
 protected:
  void SetUp() override {
    SoftwareSession::SetUp();
    session_->CreateStream(kMirrors, StreamKind::kNonBlocking);
    AddMirror();
    calls::lwMemset zero;
    zero.address = address_;
    zero.pitch = zero.width = kBytes + 64;
    zero.element_bytes = 1;
    zero.rows = 1;
    session_->ExpectProgress(kMirrors, session_->Send(zero, kMirrors));
  }
  void AddMirror() {
    calls::lwMirrorAdd add;
    add.mirror = kMirror;
    add.address = address_;
    add.bytes = kBytes;
    session_->Send(add, kMirrors);
  }
  static std::vector<std::byte> DeltaOf(size_t word, uint32_t value, wire::PageForm form) {
    std::vector<uint32_t> now(kWords), shadow(kWords);
    now[word] = value;
    std::vector<std::byte> delta;
    wire::AppendDelta(std::as_bytes(std::span(now)), reinterpret_cast<std::byte*>(shadow.data()), 0,
                      form, SIZE_MAX, &delta);
    return delta;
  }
  uint64_t PushWord(size_t word, uint32_t value, uint32_t state) {
    const std::vector<std::byte> delta = DeltaOf(word, value, wire::PageForm::kMasked);
    if (state == 0) {
      calls::lwMirrorPush push;
      push.mirror = kMirror;
      push.delta = delta;
      return session_->Send(push, kMirrors);
    }
    calls::lwMirrorState part;
    part.mirror = kMirror;
    part.delta = delta;
    part.last = state == 2;
    return session_->Send(part, kMirrors);
  }
  void Look() {
    calls::lwMirrorLook look;
    look.mirror.push_back(kMirror);
    look.bytes.push_back(kBytes);
    look.whole = true;
    session_->ExpectProgress(kMirrors, session_->Send(look, kMirrors));
  }
  // Of the next delta.
  std::vector<wire::DeltaRun> Runs() {
    record_ = session_->Expect(wire::DownKind::kMirror);
    return RunsOf(record_);
  }
  static std::vector<wire::DeltaRun> RunsOf(const DownRecord& record) {
    std::vector<wire::DeltaRun> runs;
    EXPECT_EQ(wire::ReadDelta(std::span(record.payload).subspan(8), kBytes, &runs),
              wire::WireResult::kOk);
    return runs;
  }
  // Takes in what has come, and counts its runs.
  size_t Received() {
    size_t runs = 0;
    while (auto record = session_->Take(wire::DownKind::kMirror)) {
      for (const wire::DeltaRun& run : RunsOf(*record)) {
        EXPECT_TRUE(run.form == wire::PageForm::kMasked || run.form == wire::PageForm::kWord);
        std::memcpy(reinterpret_cast<std::byte*>(host_.data()) + run.offset, run.bytes.data(),
                    run.bytes.size());
        ++runs;
      }
    }
    return runs;
  }
  void Upload(uint64_t offset, const std::vector<uint32_t>& numbers) {
    calls::lwCopyToDevice copy;
    copy.bytes = numbers.size() * 4;
    copy.place = At(offset, copy.bytes);
    copy.data = std::as_bytes(std::span(numbers));
    session_->ExpectProgress(kOne, session_->Send(copy, kOne));
  }
  calls::Place At(uint64_t offset, uint64_t bytes) const {
    return Linear(reinterpret_cast<void*>(address_ + offset), bytes);
  }
  // Without a border.
  uint32_t OnDevice(size_t word) const {
    return reinterpret_cast<const volatile uint32_t*>(address_)[word];
  }
  // Sends what the host has and the shadow has not, as parts of a state.
  uint64_t PushState(wire::PageForm form = wire::PageForm::kMasked, uint32_t last = 2) {
    uint64_t position = 0;
    const auto now = std::as_bytes(std::span(host_));
    auto* shadow = reinterpret_cast<std::byte*>(shadow_.data());
    for (size_t at = 0; at < kBytes;) {
      std::vector<std::byte> delta;
      at += wire::AppendDelta(now.subspan(at), shadow + at, at, form,
                              wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
      calls::lwMirrorState part;
      part.mirror = kMirror;
      part.delta = delta;
      part.last = at >= kBytes && last == 2;
      position = session_->Send(part, kMirrors);
    }
    return position;
  }
  void LaunchKernel(const char* name) {
    std::string text = kKernels;
    const std::string other =
        std::string(name) == "look_at_pairs" ? "count_in_pairs" : "look_at_pairs";
    text.erase(text.find(".visible .entry " + other),
               other == "count_in_pairs" ? std::string::npos
                                         : text.find(".visible .entry " + std::string(name)) -
                                               text.find(".visible .entry " + other));
    const uint64_t function =
        session_->LoadImage(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
    ASSERT_NE(function, 0u);
    struct {
      uint64_t data, bytes, out;
      uint32_t last, padding = 0;
    } parameters{address_, kBytes, address_ + kOut, kStates};
    calls::lwLaunch launch;
    launch.function = function;
    launch.grid_x = launch.grid_y = launch.grid_z = 1;
    launch.block_x = launch.block_y = launch.block_z = 1;
    launch.parameters = std::as_bytes(std::span(&parameters, 1)).first(28);
    launched_ = session_->Send(launch, kOne);
  }
  std::vector<uint32_t> Download(uint64_t offset, size_t count) {
    calls::lwCopyToHost copy;
    copy.bytes = count * 4;
    copy.place = At(offset, copy.bytes);
    copy.transfer = ++transfer_;
    session_->Send(copy, kOne);
    DownRecord record = session_->Expect(wire::DownKind::kData);
    std::vector<uint32_t> numbers(count);
    EXPECT_EQ(record.payload.size(), 16 + count * 4);
    std::memcpy(numbers.data(), record.payload.data() + 16,
                std::min(record.payload.size() - 16, count * 4));
    return numbers;
  }

  std::vector<uint32_t> host_ = std::vector<uint32_t>(kWords), shadow_ = host_;
  uint64_t launched_ = 0, transfer_ = 30;
  DownRecord record_;
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
