// Buffers that grow: when a copy is made by mapping, and that nothing else could have been told
// apart. Chunks are real memory here that can be mapped twice, so that a mapping in the wrong place
// or at the wrong time shows in the contents.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <thread>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kOld = 64 * kMiB, kNew = 96 * kMiB;

std::atomic<bool> copies_stand{false};

void LetCopiesGo() {
  copies_stand = false;
  Driver().RunStream(0);  // so that the fake driver looks again
}

// A chunk is a file; what is mapped nowhere cannot be touched.
void MakeMemoryReal(DriverTable* table) {
  table->cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*,
                                             CUmemAllocationHandleType) {
    int file = memfd_create("chunk", MFD_CLOEXEC);
    if (ftruncate(file, kDeviceBytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = static_cast<CUmemGenericAllocationHandle>(file);
    return CUDA_SUCCESS;
  };
  table->cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    close(static_cast<int>(handle));
    return CUDA_SUCCESS;
  };
  table->cuMemMap = [](CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
                       unsigned long long) {
    void* mapped = mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED, static_cast<int>(handle), 0);
    return mapped == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  table->cuMemUnmap = [](CUdeviceptr at, size_t bytes) {
    void* mapped = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  };
  table->cuMemcpyDtoDAsync_v2 = [](CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                   CUstream stream) {
    return worker::testing::FakeDriver::Get().Issue(stream, "", [=] {
      if (copies_stand) return false;
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
      return true;
    });
  };
}

uint64_t Remapped() { return shim::TheSession().counts().remapped.load(); }

uint32_t First(CUdeviceptr address) {
  uint32_t value = 0;
  EXPECT_OK(cuMemcpyDtoH_v2(&value, address, sizeof(value)));
  return value;
}

class Remap : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { AdjustDriver() = &MakeMemoryReal; }

  void SetUp() override {
    bench_ = std::make_unique<Bench>();
    ASSERT_OK(cuMemAlloc_v2(&gate_, sizeof(uint64_t)));
    ASSERT_OK(cuMemAlloc_v2(&old_, kOld));
    ASSERT_OK(cuMemsetD8_v2(old_, 1, 4096));
    ASSERT_OK(cuMemAlloc_v2(&larger_, kNew));
    for (CUstream& stream : streams_) ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_OK(cuCtxSynchronize());
    before_ = Remapped();
  }
  void TearDown() override {
    for (CUstream& stream : streams_) EXPECT_OK(cuStreamDestroy_v2(stream));
    EXPECT_OK(cuMemFree_v2(gate_));
    EXPECT_OK(cuMemFree_v2(larger_));
    EXPECT_OK(cuCtxSynchronize());
  }
  // Puts an operation into the worker's stream that stands until the value is set.
  void Block(CUstream stream) {
    ASSERT_OK(cuMemsetD8_v2(gate_, 0, sizeof(uint64_t)));
    ASSERT_OK(cuCtxSynchronize());
    ASSERT_OK(cuStreamWaitValue64_v2(stream, gate_, 1, 0));
  }
  void Open() {
    reinterpret_cast<std::atomic<uint64_t>*>(gate_)->store(1);
    Driver().RunStream(0);
  }
  uint64_t remapped() const { return Remapped() - before_; }

  std::unique_ptr<Bench> bench_;
  CUdeviceptr old_ = 0, larger_ = 0, gate_ = 0;
  CUstream streams_[2] = {};
  uint64_t before_ = 0;
};

TEST_F(Remap, WhatNobodyCanTellIsMapped) {
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  EXPECT_OK(cuStreamQuery(streams_[0]));
  EXPECT_OK(cuStreamSynchronize(streams_[0]));
  EXPECT_OK(cuCtxSynchronize());
  ASSERT_OK(cuMemFree_v2(old_));
  EXPECT_EQ(kOld, remapped());
  EXPECT_EQ(0x01010101u, First(larger_));
}

TEST_F(Remap, WorkBetweenTheCopyAndTheFreeIsAfterTheCopy) {
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  ASSERT_OK(cuMemsetD8Async(old_, 2, 4096, streams_[0]));
  ASSERT_OK(cuMemFree_v2(old_));
  EXPECT_EQ(0x01010101u, First(larger_));
  EXPECT_EQ(0u, remapped());
}

TEST_F(Remap, AFreeInTheCopysStreamMapsToo) {
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  ASSERT_OK(cuMemFreeAsync(old_, streams_[0]));
  EXPECT_EQ(kOld, remapped());
  EXPECT_EQ(0x01010101u, First(larger_));
}

TEST_F(Remap, AFreeInAnotherStreamDoesNot) {
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  ASSERT_OK(cuMemFreeAsync(old_, streams_[1]));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(0u, remapped());
  EXPECT_EQ(0x01010101u, First(larger_));
}

// Its writes come after the copy has read, and may come after the program knows so.
TEST_F(Remap, UnorderedWorkOfBeforeMayWriteAfterTheCopy) {
  Block(streams_[1]);
  bench_->Add(streams_[1], old_, 1, 5);
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  ASSERT_OK(cuStreamSynchronize(streams_[0]));
  Open();
  EXPECT_EQ(CUDA_SUCCESS, cuMemFree_v2(old_));
  EXPECT_EQ(0x01010101u, First(larger_));
  EXPECT_OK(cuStreamSynchronize(streams_[1]));
  EXPECT_EQ(0u, remapped());
}

// The copy is queued late, and the program believes it done: nothing may run before it.
TEST_F(Remap, WorkElsewhereWaitsForACopyThatIsQueuedLate) {
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  ASSERT_OK(cuStreamSynchronize(streams_[0]));
  copies_stand = true;
  std::atomic<bool> added{false};
  const std::atomic<uint64_t>& waits = shim::TheSession().counts().waits;
  std::thread device([&, before = waits.load()] {
    while (waits.load() == before && !added) std::this_thread::yield();
    LetCopiesGo();
  });
  bench_->Add(streams_[1], larger_, 1, 7);
  while (cuStreamQuery(streams_[1]) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  added = true;
  device.join();
  EXPECT_EQ(0x01010108u, First(larger_));
  ASSERT_OK(cuMemFree_v2(old_));
  EXPECT_EQ(0u, remapped());
}

// The copy was not reported: no thread waits for the copy's stream, which may wait for that very
// thread.
TEST_F(Remap, WorkElsewhereDoesNotWaitForWhatIsNotOver) {
  Block(streams_[0]);
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(streams_[0]));
  bench_->Add(streams_[1], larger_ + kOld, 1, 1);
  EXPECT_OK(cuStreamSynchronize(streams_[1]));
  Open();
  EXPECT_OK(cuStreamSynchronize(streams_[0]));
  EXPECT_EQ(0x01010101u, First(larger_));
  ASSERT_OK(cuMemFree_v2(old_));
  EXPECT_EQ(0u, remapped());
}

TEST_F(Remap, AnotherThreadsWorkIsAfterTheCopyToo) {
  ASSERT_OK(cuMemcpyDtoDAsync_v2(larger_, old_, kOld, streams_[0]));
  std::thread([this] {
    Bench own;
    own.Add(streams_[1], old_, 0, 0);
    EXPECT_OK(cuStreamSynchronize(streams_[1]));
  }).join();
  ASSERT_OK(cuMemFree_v2(old_));
  EXPECT_EQ(0u, remapped());
  EXPECT_EQ(0x01010101u, First(larger_));
}

TEST_F(Remap, MemoryOfTheOldOneIsUsedAgain) {
  size_t free_before = 0, free_after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo_v2(&free_before, &total));
  ASSERT_OK(cuMemcpyDtoD_v2(larger_, old_, kOld));
  ASSERT_OK(cuMemFree_v2(old_));
  ASSERT_OK(cuMemGetInfo_v2(&free_after, &total));
  EXPECT_EQ(free_before + kOld, free_after);
  for (int round = 0; round < 10; ++round) {
    CUdeviceptr other = 0;
    ASSERT_OK(cuMemAlloc_v2(&other, kOld));
    ASSERT_OK(cuMemsetD8Async(other, 9, kOld, nullptr));
    ASSERT_OK(cuMemFree_v2(other));
  }
  EXPECT_EQ(0x01010101u, First(larger_)) << "nobody else has these bytes";
  EXPECT_EQ(kOld, remapped());
}

TEST_F(Remap, WhatStandsBehindInTheTargetStays) {
  ASSERT_OK(cuMemsetD8_v2(larger_, 3, kNew));
  ASSERT_OK(cuMemcpyDtoD_v2(larger_, old_, kOld));
  ASSERT_OK(cuMemFree_v2(old_));
  EXPECT_EQ(kOld, remapped());
  EXPECT_EQ(0x01010101u, First(larger_));
  EXPECT_EQ(0x03030303u, First(larger_ + kOld));
}

}  // namespace
}  // namespace longwire::joined
