// Copies from pinned memory whose bytes went ahead of their stream: what is written there later
// counts, until the stream gets to them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

using namespace std::chrono_literals;

constexpr size_t kBytes = 100'000;

class LateWrites : public ::testing::Test {
 protected:
  void SetUp() override {
    bench_ = std::make_unique<Bench>();
    ASSERT_OK(cuMemAlloc_v2(&gate_, sizeof(uint64_t)));
    ASSERT_OK(cuMemAlloc_v2(&target_, kBytes));
    ASSERT_OK(cuMemAlloc_v2(&elsewhere_, kBytes));
    ASSERT_OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned_), kBytes, 0));
    ASSERT_OK(cuStreamCreate(&held_, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuMemsetD8_v2(gate_, 0, sizeof(uint64_t)));
    ASSERT_OK(cuMemsetD8_v2(elsewhere_, 4, kBytes));
    ASSERT_OK(cuCtxSynchronize());
  }
  void TearDown() override {
    Open();
    EXPECT_OK(cuCtxSynchronize());
    for (CUstream stream : {held_, other_}) EXPECT_OK(cuStreamDestroy_v2(stream));
    for (CUdeviceptr memory : {gate_, target_, elsewhere_}) EXPECT_OK(cuMemFree_v2(memory));
    EXPECT_OK(cuMemFreeHost(pinned_));
  }
  // Its bytes are sent, with 1 in all of them.
  void CopyBehindTheGate() {
    std::memset(pinned_, 1, kBytes);
    ASSERT_OK(cuStreamWaitValue64_v2(held_, gate_, 1, 0));
    uint64_t before = LogBytes();
    ASSERT_OK(cuMemcpyHtoDAsync_v2(target_, pinned_, kBytes, held_));
    EXPECT_GE(LogBytes() - before, kBytes);
  }
  // With no word from the client.
  void Open() {
    reinterpret_cast<std::atomic<uint64_t>*>(gate_)->store(1);
    Driver().RunStream(0);
  }
  void ExpectArrived(unsigned char value) {
    ASSERT_OK(cuStreamSynchronize(held_));
    auto* bytes = reinterpret_cast<unsigned char*>(target_);
    EXPECT_EQ(kBytes, std::count(bytes, bytes + kBytes, value)) << int{bytes[0]};
  }

  std::unique_ptr<Bench> bench_;
  CUdeviceptr gate_ = 0, target_ = 0, elsewhere_ = 0;
  unsigned char* pinned_ = nullptr;
  CUstream held_ = nullptr, other_ = nullptr;
};

TEST_F(LateWrites, CountFromTheNextCallOn) {
  CopyBehindTheGate();
  std::memset(pinned_, 2, kBytes);
  ASSERT_OK(cuMemsetD8Async(elsewhere_, 0, kBytes, other_));
  ASSERT_OK(cuStreamSynchronize(other_));
  Open();
  ExpectArrived(2);
}

TEST_F(LateWrites, CountWithoutACall) {
  CopyBehindTheGate();
  uint64_t before = LogBytes();
  std::memset(pinned_, 3, kBytes);
  auto until = std::chrono::steady_clock::now() + 20s;
  while (LogBytes() - before < kBytes && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  // When the worker has this it has that, too.
  ASSERT_OK(cuMemsetD8Async(elsewhere_, 0, kBytes, other_));
  ASSERT_OK(cuStreamSynchronize(other_));
  Open();
  ExpectArrived(3);
}

// The device itself lets the stream go, behind a copy to the same memory.
TEST_F(LateWrites, OfTheDeviceCountWithoutAWordFromTheClient) {
  CopyBehindTheGate();
  ASSERT_OK(cuMemcpyDtoHAsync_v2(pinned_, elsewhere_, kBytes, other_));
  bench_->Add(other_, gate_, 1, 1);
  ExpectArrived(4);
}

TEST_F(LateWrites, CountNoMoreOnceTheStreamIsThere) {
  CopyBehindTheGate();
  Open();
  ASSERT_OK(cuStreamSynchronize(held_));
  std::memset(pinned_, 5, kBytes);
  ASSERT_OK(cuMemsetD8Async(elsewhere_, 0, kBytes, other_));
  ASSERT_OK(cuStreamSynchronize(other_));
  ExpectArrived(1);
}

}  // namespace
}  // namespace longwire::joined
