// A fixture: a session with a mirror on the software device, and kernels that look at pairs of
// words or write them.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "server/worker/testing/software_session.h"
#include "wire/page_delta.h"

namespace longwire::worker::testing {

constexpr uint64_t kMirrors = 23, kMirror = 5;
constexpr uint32_t kStates = 12;

// look_at_pairs: reads the first and then the last word until the first one is `last`; counts how
// often the last one was older. count_in_pairs: the same number goes to the first word and then to
// the last one, ever larger, until the second word is not 0.
inline constexpr char kKernels[] = R"(
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

class StatesFixture : public SoftwareSession {
 protected:
  explicit StatesFixture(size_t bytes) : bytes_(bytes) {}
  void SetUp() override {
    SoftwareSession::SetUp();
    session_->CreateStream(kMirrors, StreamKind::kNonBlocking);
    AddMirror();
    calls::lwMemset zero;
    zero.address = address_;
    zero.pitch = zero.width = bytes_ + (32 << 10);
    zero.element_bytes = 1;
    zero.rows = 1;
    session_->ExpectProgress(kMirrors, session_->Send(zero, kMirrors));
  }
  // A kernel that a failed expectation has left running would lose its memory under it.
  void TearDown() override {
    if (HasFailure() && launched_ != 0) {
      auto* word = reinterpret_cast<volatile uint32_t*>(address_);
      word[0] = kStates;
      word[1] = 1;
      session_->ExpectProgress(kOne, launched_);
    }
    SoftwareSession::TearDown();
  }
  void AddMirror() {
    calls::lwMirrorAdd add;
    add.mirror = kMirror;
    add.address = address_;
    add.bytes = bytes_;
    session_->Send(add, kMirrors);
  }
  std::vector<std::byte> DeltaOf(size_t word, uint32_t value, wire::PageForm form) const {
    std::vector<uint32_t> now(bytes_ / 4), shadow(bytes_ / 4);
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
    look.bytes.push_back(bytes_);
    look.whole = true;
    session_->ExpectProgress(kMirrors, session_->Send(look, kMirrors));
  }
  // Of the next delta.
  std::vector<wire::DeltaRun> Runs() {
    record_ = session_->Expect(wire::DownKind::kMirror);
    return RunsOf(record_);
  }
  std::vector<wire::DeltaRun> RunsOf(const DownRecord& record) const {
    std::vector<wire::DeltaRun> runs;
    EXPECT_EQ(wire::ReadDelta(std::span(record.payload).subspan(8), bytes_, &runs),
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
    for (size_t at = 0; at < bytes_;) {
      std::vector<std::byte> delta;
      at += wire::AppendDelta(now.subspan(at), shadow + at, at, form,
                              wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
      calls::lwMirrorState part;
      part.mirror = kMirror;
      part.delta = delta;
      part.last = at >= bytes_ && last == 2;
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
    } parameters{address_, bytes_, address_ + bytes_, kStates};
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

  const size_t bytes_;
  std::vector<uint32_t> host_ = std::vector<uint32_t>(bytes_ / 4), shadow_ = host_;
  uint64_t launched_ = 0, transfer_ = 30;
  DownRecord record_;
};

}  // namespace longwire::worker::testing
