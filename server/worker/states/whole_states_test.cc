// States of several words, on the software device: kernels that run see all of one or nothing, and
// what they write comes as a state.
#include <cstring>
#include <numeric>

#include "server/worker/testing/software_session.h"
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
    calls::lwMirrorAdd add;
    add.mirror = kMirror;
    add.address = address_;
    add.bytes = kBytes;
    session_->Send(add, kMirrors);
    calls::lwMemset zero;
    zero.address = address_;
    zero.pitch = zero.width = kBytes + 64;
    zero.element_bytes = 1;
    zero.rows = 1;
    session_->ExpectProgress(kMirrors, session_->Send(zero, kMirrors));
  }
  // Sends what the host has and the shadow has not, as parts of a state.
  uint64_t PushState(wire::PageForm form = wire::PageForm::kMasked) {
    uint64_t position = 0;
    const auto now = std::as_bytes(std::span(host_));
    auto* shadow = reinterpret_cast<std::byte*>(shadow_.data());
    for (size_t at = 0; at < kBytes;) {
      std::vector<std::byte> delta;
      at += wire::AppendDelta(now.subspan(at), shadow + at, at, form,
                              wire::kDeltaBytes - wire::kMaxDeltaOfPage, &delta);
      calls::lwMirrorPush push;
      push.mirror = kMirror;
      push.delta = delta;
      push.state = at < kBytes ? 1 : 2;
      position = session_->Send(push, kMirrors);
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
    copy.place.address = address_ + offset;
    copy.place.width_bytes = copy.place.pitch = copy.bytes;
    copy.place.rows = copy.place.slices = copy.place.height = 1;
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

}  // namespace
}  // namespace longwire::worker::testing
