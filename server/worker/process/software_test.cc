// A session on the software device: memory leased from a keeper, an upload, a kernel from PTX, the
// results back; device faults; the same through a captured graph.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "server/worker/testing/software_session.h"
#include "wire/page_delta.h"

namespace longwire::worker::testing {
namespace {

constexpr char kAddOne[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 data, .param .u32 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1;
  @%p bra done;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  add.u32 %r4, %r3, 1;
  st.global.u32 [%rd3], %r4;
done:
  ret;
}
)";

class Software : public SoftwareSession {
 protected:
  calls::Place At(uint64_t address, uint64_t bytes) {
    calls::Place place;
    place.address = address;
    place.width_bytes = place.pitch = bytes;
    place.rows = place.slices = place.height = 1;
    return place;
  }
  void Upload(const std::vector<uint32_t>& numbers) {
    calls::lwCopyToDevice copy;
    copy.bytes = numbers.size() * 4;
    copy.place = At(address_, copy.bytes);
    copy.data = std::as_bytes(std::span(numbers));
    session_->Send(copy, kOne);
  }
  uint64_t Launch(uint64_t address, uint32_t count, uint16_t flags = 0) {
    struct {
      uint64_t data;
      uint32_t count;
      uint32_t padding = 0;
    } parameters{address, count};
    calls::lwLaunch launch;
    launch.function = function_;
    launch.grid_x = launch.grid_y = launch.grid_z = 1;
    launch.block_x = 64;
    launch.block_y = launch.block_z = 1;
    launch.parameters = std::as_bytes(std::span(&parameters, 1)).first(12);
    return session_->Send(launch, kOne, flags);
  }
  std::vector<uint32_t> Download(size_t count, uint16_t flags = 0) {
    calls::lwCopyToHost copy;
    copy.bytes = count * 4;
    copy.place = At(address_, copy.bytes);
    copy.transfer = 31;
    session_->Send(copy, kOne, flags);
    return flags != 0 ? std::vector<uint32_t>() : Data(count);
  }
  std::vector<uint32_t> Data(size_t count) {
    DownRecord record = session_->Expect(wire::DownKind::kData);
    std::vector<uint32_t> numbers(count);
    EXPECT_EQ(record.payload.size(), 16 + count * 4);
    if (record.payload.size() == 16 + count * 4) {
      std::memcpy(numbers.data(), record.payload.data() + 16, count * 4);
    }
    return numbers;
  }
  void LoadKernel() {
    function_ = session_->LoadImage(std::as_bytes(std::span(kAddOne)));
    ASSERT_NE(function_, 0u);
  }

  uint64_t function_ = 0;
};

TEST_F(Software, KernelAddsOne) {
  LoadKernel();
  std::vector<uint32_t> numbers(64);
  std::iota(numbers.begin(), numbers.end(), 100);
  Upload(numbers);
  Launch(address_, 64);
  Launch(address_, 64);
  auto got = Download(64);
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 102 + i);
}

TEST_F(Software, CapturedGraphCopiesAtEveryLaunch) {
  LoadKernel();
  std::vector<uint32_t> numbers(64, 5);
  calls::lwCaptureBegin begin;
  EXPECT_EQ(session_->ExpectReply(session_->Send(begin, kOne, wire::kCapturing)).header.code, 0);
  calls::lwCopyToDevice upload;
  upload.bytes = 256;
  upload.place = At(address_, 256);
  upload.transfer = 40;
  upload.pull = true;
  session_->Send(upload, kOne, wire::kCapturing);
  Launch(address_, 64, wire::kCapturing);
  calls::lwHostFunction host;
  host.ticket = 9;
  session_->Send(host, kOne, wire::kCapturing);
  Download(64, wire::kCapturing);
  calls::lwCaptureEnd end;
  end.graph = 50;
  EXPECT_EQ(session_->ExpectReply(session_->Send(end, kOne, wire::kCapturing)).header.code, 0);
  calls::lwGraphInstantiate instantiate;
  instantiate.graph = 50;
  instantiate.exec = 51;
  EXPECT_EQ(session_->ExpectReply(session_->Send(instantiate)).header.code, 0);
  calls::lwGraphLaunch launch;
  launch.exec = 51;
  for (int round = 0; round < 3; ++round) session_->Send(launch, kOne);
  for (uint32_t round = 0; round < 3; ++round) {
    EXPECT_EQ(session_->Expect(wire::DownKind::kPull).Number(), 40u);
    std::fill(numbers.begin(), numbers.end(), 10 * round);
    calls::lwCopyData data;
    data.transfer = 40;
    data.data = std::as_bytes(std::span(numbers));
    session_->Send(data);
    EXPECT_EQ(session_->Expect(wire::DownKind::kHostFunction).Number(), 9u);
    calls::lwHostFunctionDone done;
    done.ticket = 9;
    session_->Send(done);
    auto got = Data(64);
    EXPECT_EQ(got, std::vector<uint32_t>(64, 10 * round + 1));
  }
}

TEST_F(Software, UnmapWaitsAndMapOfTheSameRangeFollows) {
  LoadKernel();
  uint64_t last = Launch(address_, 64);
  uint64_t chunk = reply_.devices[0].leased[0].chunk;
  calls::lwUnmap unmap;
  unmap.address = address_;
  unmap.bytes = reply_.devices[0].leased[0].bytes;
  uint64_t unmapped = session_->Send(unmap, 0, wire::kWantsReply);
  calls::lwMap map;
  map.address = address_;
  map.chunk = {chunk};
  uint64_t mapped = session_->Send(map, 0, wire::kWantsReply);
  Upload(std::vector<uint32_t>(64, 7));
  session_->ExpectProgress(kOne, last);
  EXPECT_EQ(session_->ExpectReply(unmapped).header.code, 0);
  EXPECT_EQ(session_->ExpectReply(mapped).header.code, 0);
  EXPECT_EQ(Download(64), std::vector<uint32_t>(64, 7));
}

TEST_F(Software, WhatTheProgramWroteIsBehindNoMapThatWaitsForIt) {
  constexpr uint64_t kMirrors = 23;
  LoadKernel();
  Upload(std::vector<uint32_t>(64, 7));
  session_->CreateStream(kMirrors, StreamKind::kNonBlocking);
  calls::lwMirrorAdd add;
  add.mirror = 5;
  add.address = address_;
  add.bytes = 64 * sizeof(uint32_t);
  session_->Send(add, kMirrors);
  calls::lwEventCreate create;
  create.event = 21;
  session_->Send(create);
  calls::lwStreamWaitEvent wait;
  wait.event = 21;
  wait.version = 1;
  session_->Send(wait, kOne);
  uint64_t last = Launch(address_, 64);
  calls::lwUnmap unmap;
  unmap.address = address_;
  unmap.bytes = reply_.devices[0].leased[0].bytes;
  session_->Send(unmap);
  calls::lwMap map;
  map.address = address_;
  map.chunk = {reply_.devices[0].leased[0].chunk};
  uint64_t mapped = session_->Send(map, 0, wire::kWantsReply);
  EXPECT_TRUE(session_->Quiet(wire::DownKind::kReply));
  std::vector<uint32_t> host(64, 30), shadow(64, 0);
  std::vector<std::byte> delta;
  wire::AppendDelta(std::as_bytes(std::span(host)), reinterpret_cast<std::byte*>(shadow.data()), 0,
                    wire::PageForm::kMasked, SIZE_MAX, &delta);
  calls::lwMirrorPush push;
  push.mirror = 5;
  push.delta = delta;
  session_->Send(push, kMirrors);
  calls::lwEventRecord record;
  record.event = 21;
  record.version = 1;
  session_->Send(record, kMirrors);
  session_->ExpectProgress(kOne, last);
  EXPECT_EQ(session_->ExpectReply(mapped).header.code, 0);
  EXPECT_EQ(Download(64), std::vector<uint32_t>(64, 31)) << "the kernel adds 1";
}

TEST_F(Software, RemappedMemoryHasItsBytesAndNothingElseIsTouched) {
  uint64_t bytes = reply_.devices[0].leased[0].bytes;
  Upload(std::vector<uint32_t>(64, 7));
  EXPECT_EQ(Download(64), std::vector<uint32_t>(64, 7));
  calls::lwRemap remap;
  remap.address = address_;
  remap.chunk = {reply_.devices[0].leased[0].chunk};
  remap.unmap = 2 * bytes;
  EXPECT_EQ(session_->ExpectReply(session_->Send(remap, 0, wire::kWantsReply)).header.code,
            CUDA_ERROR_INVALID_HANDLE)
      << "as much as is unmapped is mapped";
  remap.unmap = bytes;
  remap.address = address_ + bytes;
  EXPECT_EQ(session_->ExpectReply(session_->Send(remap, 0, wire::kWantsReply)).header.code,
            CUDA_ERROR_INVALID_VALUE)
      << "nothing is mapped there";
  remap.address = address_;
  remap.moved = bytes;
  EXPECT_EQ(session_->ExpectReply(session_->Send(remap, 0, wire::kWantsReply)).header.code, 0);
  EXPECT_EQ(Download(64), std::vector<uint32_t>(64, 7));
}

// Last: it poisons the process.
TEST_F(Software, WildAddressIsAnIllegalAddress) {
  LoadKernel();
  uint64_t position = Launch(uint64_t{0x10}, 64);
  DownRecord error = session_->Expect(wire::DownKind::kError);
  EXPECT_EQ(error.header.code, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE((error.header.flags & wire::kSticky) != 0);
  session_->ExpectProgress(kOne, position);
}

}  // namespace
}  // namespace longwire::worker::testing
