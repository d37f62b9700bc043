// Memory that was freed while work before the free was unfinished, and is wanted again: when it is
// used at once, and that nobody finds what that work still writes.
#include <thread>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

constexpr size_t kBytes = size_t{100} << 20;  // the device has no second one beside the gate

class Reuse : public ::testing::Test {
 protected:
  void SetUp() override {
    bench_ = std::make_unique<Bench>();
    ASSERT_OK(cuMemAlloc_v2(&gate_, sizeof(uint64_t)));
    ASSERT_OK(cuMemsetD8_v2(gate_, 0, sizeof(uint64_t)));
    CUdeviceptr leased = 0;
    ASSERT_OK(cuMemAlloc_v2(&leased, kBytes));
    ASSERT_OK(cuMemFree_v2(leased));
    ASSERT_OK(cuCtxSynchronize());
  }
  void TearDown() override {
    EXPECT_OK(cuCtxSynchronize());
    EXPECT_OK(cuMemFree_v2(gate_));
  }

  // Frees memory to which work still writes 2, behind a gate, and wants as much again.
  void FreeAndAllocate(CUstream stream, CUdeviceptr* again) {
    CUdeviceptr first = 0;
    ASSERT_OK(cuMemAlloc_v2(&first, kBytes));
    ASSERT_OK(cuStreamWaitValue64_v2(stream, gate_, 1, 0));
    ASSERT_OK(cuMemsetD8Async(first, 2, kBytes, stream));
    ASSERT_OK(cuMemFree_v2(first));
    ASSERT_OK(cuMemAlloc_v2(again, kBytes));
    ASSERT_EQ(first, *again);
  }
  void Open() {
    reinterpret_cast<std::atomic<uint64_t>*>(gate_)->store(1);
    Driver().RunStream(0);
  }
  // Runs `step`, and opens the gate as soon as somebody waits, or the step is over. True: somebody
  // waited.
  bool OpenWhenAwaited(const std::function<void()>& step) {
    const std::atomic<uint64_t>& waits = shim::TheSession().counts().waits;
    std::atomic<bool> over{false};
    bool waited = false;
    std::thread opener([&, before = waits.load()] {
      while (waits.load() == before && !over) std::this_thread::yield();
      waited = waits.load() != before;
      Open();
    });
    step();
    over = true;
    opener.join();
    return waited;
  }
  uint32_t First(CUdeviceptr address) {
    uint32_t value = 0;
    EXPECT_OK(cuMemcpyDtoH_v2(&value, address, sizeof(value)));
    return value;
  }

  std::unique_ptr<Bench> bench_;
  CUdeviceptr gate_ = 0;
};

TEST_F(Reuse, InTheOnlyStreamNobodyWaits) {
  CUdeviceptr again = 0;
  EXPECT_FALSE(OpenWhenAwaited([&] {
    FreeAndAllocate(nullptr, &again);
    EXPECT_OK(cuMemsetD8Async(again, 7, kBytes, nullptr));
  }));
  EXPECT_EQ(0x07070707u, First(again));
  ASSERT_OK(cuMemFree_v2(again));
}

TEST_F(Reuse, WorkOfALaterStreamComesBehind) {
  CUdeviceptr again = 0;
  FreeAndAllocate(nullptr, &again);
  CUstream later = nullptr;
  ASSERT_OK(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
  EXPECT_TRUE(OpenWhenAwaited([&] {
    EXPECT_OK(cuMemsetD8Async(again, 7, kBytes, later));
    while (cuStreamQuery(later) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  }));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_EQ(0x07070707u, First(again));
  ASSERT_OK(cuMemFree_v2(again));
  EXPECT_OK(cuStreamDestroy_v2(later));
}

// It may be the one that opens the gate: its work must not wait for the free's.
TEST_F(Reuse, BesideAStreamThatWaitsForNobodyTheAllocationWaits) {
  CUstream other = nullptr;
  ASSERT_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUdeviceptr again = 0;
  EXPECT_TRUE(OpenWhenAwaited([&] { FreeAndAllocate(nullptr, &again); }));
  ASSERT_OK(cuMemFree_v2(again));
  EXPECT_OK(cuStreamDestroy_v2(other));
}

TEST_F(Reuse, WhatAStreamFreedIsNotForAll) {
  CUdeviceptr first = 0, again = 0;
  ASSERT_OK(cuMemAllocAsync(&first, kBytes, nullptr));
  ASSERT_OK(cuStreamWaitValue64_v2(nullptr, gate_, 1, 0));
  ASSERT_OK(cuMemFreeAsync(first, nullptr));
  EXPECT_TRUE(OpenWhenAwaited([&] { EXPECT_OK(cuMemAlloc_v2(&again, kBytes)); }));
  ASSERT_OK(cuMemFree_v2(again));
}

}  // namespace
}  // namespace longwire::joined
