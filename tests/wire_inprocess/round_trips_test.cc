// While one thread waits for the server's answer, other threads' calls that need no answer return.
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

using namespace std::chrono_literals;
using Call = std::function<CUresult()>;

constexpr size_t kBytes = 4 << 20;

void Adjust(DriverTable* table) {
  table->cuModuleGetSurfRef = [](CUsurfref* reference, CUmodule, const char*) {
    *reference = reinterpret_cast<CUsurfref>(uintptr_t{0x99});
    return CUDA_SUCCESS;
  };
  table->cuDeviceCanAccessPeer = [](int* can, CUdevice, CUdevice) {
    *can = 1;
    return CUDA_SUCCESS;
  };
}

class RoundTrip : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    MayStandStill() = true;
    DeviceCount() = 3;
    AdjustDriver() = &Adjust;
  }
  void SetUp() override {
    ASSERT_OK(cuMemHostAlloc(&pinned_, 4096, 0));
    ASSERT_OK(cuCtxSynchronize());
  }
  void TearDown() override { EXPECT_OK(cuMemFreeHost(pinned_)); }

  std::future<CUresult> Start(Call call) {
    return std::async(std::launch::async, [this, call = std::move(call)] {
      EXPECT_OK(cuCtxSetCurrent(bench_.context));
      return call();
    });
  }

  // `waits` asks the server, which does not answer until `independent` has returned. Returns what
  // `waits` does.
  CUresult Beside(const Call& waits, const Call& independent, CUresult expected = CUDA_SUCCESS) {
    StandStill();
    uint64_t before = LogBytes();
    std::future<CUresult> waiting = Start(waits);
    while (LogBytes() == before) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);  // it may have more to say before it waits
    EXPECT_EQ(std::future_status::timeout, waiting.wait_for(0s)) << "it asks nothing";
    std::future<CUresult> other = Start(independent);
    EXPECT_EQ(std::future_status::ready, other.wait_for(10s)) << "it waits for the other thread";
    GoOn();
    EXPECT_EQ(expected, other.get());
    return waiting.get();
  }

  // Memory of the device, and addresses for it.
  void CreateMemory(int device, CUmemGenericAllocationHandle* handle, CUdeviceptr* at) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    ASSERT_OK(cuMemCreate(handle, kBytes, &properties, 0));
    ASSERT_OK(cuMemAddressReserve(at, kBytes, 0, 0, 0));
  }
  void DropMemory(CUmemGenericAllocationHandle handle, CUdeviceptr at) {
    EXPECT_OK(cuMemAddressFree(at, kBytes));
    EXPECT_OK(cuMemRelease(handle));
  }

  Bench bench_;
  void* pinned_ = nullptr;
};

TEST_F(RoundTrip, OfAPrimaryContextThatIsMade) {
  CUcontext made = nullptr;
  EXPECT_OK(Beside([&] { return cuDevicePrimaryCtxRetain(&made, 1); },
                   [] { return cuDevicePrimaryCtxRelease_v2(1); }, CUDA_ERROR_INVALID_CONTEXT));
  EXPECT_OK(cuDevicePrimaryCtxRelease_v2(1));
}

TEST_F(RoundTrip, OfAPrimaryContextThatTwoThreadsWant) {
  CUcontext made[2] = {};
  std::future<CUresult> second;
  EXPECT_OK(Beside([&] { return cuDevicePrimaryCtxRetain(&made[0], 1); },
                   [&] {
                     second = Start([&] { return cuDevicePrimaryCtxRetain(&made[1], 1); });
                     return CUDA_SUCCESS;
                   }));
  EXPECT_OK(second.get());
  EXPECT_EQ(made[0], made[1]);
  for (int i = 0; i < 2; ++i) EXPECT_OK(cuDevicePrimaryCtxRelease_v2(1));
  EXPECT_EQ(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(1));
}

TEST_F(RoundTrip, OfAMappingThatGoes) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  CreateMemory(0, &handle, &at);
  ASSERT_OK(cuMemMap(at, kBytes, 0, handle, 0));
  CUmemAllocationProp properties{};
  std::future<CUresult> again;
  EXPECT_OK(Beside([&] { return cuMemUnmap(at, kBytes); },
                   [&] {
                     again = Start([&] { return cuMemUnmap(at, kBytes); });
                     return cuMemGetAllocationPropertiesFromHandle(&properties, handle);
                   }));
  EXPECT_OK(again.get());
  DropMemory(handle, at);
}

TEST_F(RoundTrip, OfAMappingOnADeviceThatIsNotInUse) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  CreateMemory(2, &handle, &at);
  CUmemAllocationProp properties{};
  EXPECT_OK(Beside([&] { return cuMemMap(at, kBytes, 0, handle, 0); },
                   [&] { return cuMemGetAllocationPropertiesFromHandle(&properties, handle); }));
  EXPECT_OK(cuMemUnmap(at, kBytes));
  DropMemory(handle, at);
}

TEST_F(RoundTrip, OfAMappingThatADeviceMayReach) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  CreateMemory(0, &handle, &at);
  ASSERT_OK(cuMemMap(at, kBytes, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUmemAllocationProp properties{};
  EXPECT_OK(Beside([&] { return cuMemSetAccess(at, kBytes, &access, 1); },
                   [&] { return cuMemGetAllocationPropertiesFromHandle(&properties, handle); }));
  EXPECT_OK(cuMemUnmap(at, kBytes));
  DropMemory(handle, at);
}

TEST_F(RoundTrip, OfManagedMemoryThatIsMade) {
  CUdeviceptr managed = 0;
  void* more = nullptr;
  EXPECT_OK(Beside([&] { return cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL); },
                   [&] { return cuMemHostAlloc(&more, 4096, 0); }));
  EXPECT_OK(cuMemFreeHost(more));
  EXPECT_OK(cuMemFree_v2(managed));
}

TEST_F(RoundTrip, OfManagedMemoryThatGoes) {
  CUdeviceptr managed = 0;
  void* more = nullptr;
  ASSERT_OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_OK(Beside([&] { return cuMemFree_v2(managed); },
                   [&] { return cuMemHostAlloc(&more, 4096, 0); }));
  EXPECT_OK(cuMemFreeHost(more));
}

TEST_F(RoundTrip, OfASurfaceReference) {
  CUmodule module = nullptr;
  CUsurfref known = nullptr, other = nullptr, again = nullptr;
  ASSERT_OK(cuModuleLoadData(&module, "the fake driver reads no code"));
  ASSERT_OK(cuModuleGetSurfRef(&known, module, "known"));
  EXPECT_OK(Beside([&] { return cuModuleGetSurfRef(&other, module, "other"); },
                   [&] { return cuModuleGetSurfRef(&again, module, "known"); }));
  EXPECT_EQ(known, again);
  EXPECT_NE(known, other);
  EXPECT_OK(cuModuleUnload(module));
}

}  // namespace
}  // namespace longwire::joined
