// Two devices: whose kernels reach whose memory, and code and its globals on each.
#include <unistd.h>

#include <cstdlib>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

class PeerTest : public DeviceTest {
 protected:
  static void SetUpTestSuite() {  // before the first cuInit of this process
    setenv("LONGWIRE_SOFTWARE_DEVICES", "2", 1);
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_CU(cuDevicePrimaryCtxRetain(&other_, 1));
  }
  void TearDown() override {
    DeviceTest::TearDown();
    cuDevicePrimaryCtxRelease(1);
  }
  // Memory of the other device, with a known content.
  CUdeviceptr AllocateOnOther(uint32_t value) {
    CUdeviceptr memory = 0;
    EXPECT_CU(cuCtxSetCurrent(other_));
    EXPECT_CU(cuMemAlloc(&memory, 4));
    EXPECT_CU(cuMemsetD32(memory, value, 1));
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_CU(cuCtxSetCurrent(context_));
    return memory;
  }
  uint32_t Read(CUdeviceptr address) {
    uint32_t value = 0;
    EXPECT_CU(cuMemcpyDtoH(&value, address, 4));
    return value;
  }
  // Device 0 writes to the address; what the synchronize after it says.
  CUresult StoreFromFirst(CUdeviceptr target, unsigned value) {
    void* parameters[] = {&target, &value};
    EXPECT_CU(cuCtxSetCurrent(context_));
    EXPECT_CU(cuLaunchKernel(Function(LoadKernels(), "Store"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             parameters, nullptr));
    return cuCtxSynchronize();
  }
  CUdeviceptr MapOnOther(CUdeviceptr* reserved) {
    CUmemGenericAllocationHandle handle = 0;
    auto properties = ChunkProperties(1);
    EXPECT_CU(cuMemCreate(&handle, kChunk, &properties, 0));
    EXPECT_CU(cuMemAddressReserve(reserved, kChunk, 0, 0, 0));
    EXPECT_CU(cuMemMap(*reserved, kChunk, 0, handle, 0));
    EXPECT_CU(cuMemRelease(handle));
    return *reserved;
  }

  CUcontext other_ = nullptr;
};

TEST_F(PeerTest, EnabledAccessReachesPresentAndLaterMemory) {
  int can = 0;
  ASSERT_CU(cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  ASSERT_CU(cuDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQ(can, 0);
  ASSERT_CU(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cuDeviceCanAccessPeer(&can, 0, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
            CUDA_ERROR_INVALID_DEVICE);
  CUdeviceptr before = AllocateOnOther(1);
  EXPECT_EQ(cuCtxDisablePeerAccess(other_), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  ASSERT_CU(cuCtxEnablePeerAccess(other_, 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(other_, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  EXPECT_EQ(cuCtxEnablePeerAccess(nullptr, 0), CUDA_ERROR_INVALID_CONTEXT);
  CUdeviceptr after = AllocateOnOther(2);
  EXPECT_CU(StoreFromFirst(before, 11));
  EXPECT_CU(StoreFromFirst(after, 12));
  EXPECT_EQ(Read(before), 11u);
  EXPECT_EQ(Read(after), 12u);
  EXPECT_CU(cuCtxDisablePeerAccess(other_));
}

TEST_F(PeerTest, WithoutAccessItIsAnIllegalAddress) {
  auto store = [this] {
    CUresult result = StoreFromFirst(AllocateOnOther(1), 2);
    _exit(result == CUDA_ERROR_ILLEGAL_ADDRESS && !HasFailure() ? 0 : 1);
  };
  EXPECT_EXIT(store(), testing::ExitedWithCode(0), "error 700");
  auto after_disabling = [&] {
    EXPECT_CU(cuCtxEnablePeerAccess(other_, 0));
    EXPECT_CU(cuCtxDisablePeerAccess(other_));
    store();
  };
  EXPECT_EXIT(after_disabling(), testing::ExitedWithCode(0), "error 700");
  auto after_a_reset = [&] {
    EXPECT_CU(cuCtxEnablePeerAccess(other_, 0));
    EXPECT_CU(cuDevicePrimaryCtxReset(0));
    store();
  };
  EXPECT_EXIT(after_a_reset(), testing::ExitedWithCode(0), "error 700");
}

// The other direction was not asked for.
TEST_F(PeerTest, AccessIsOneWay) {
  auto store = [this] {
    CUdeviceptr target = AllocateOnOther(1);
    CUdeviceptr own = 0;
    EXPECT_CU(cuMemAlloc(&own, 4));
    EXPECT_CU(cuCtxEnablePeerAccess(other_, 0));
    EXPECT_CU(StoreFromFirst(target, 2));
    EXPECT_CU(cuCtxSetCurrent(other_));
    unsigned value = 3;
    void* parameters[] = {&own, &value};
    EXPECT_CU(cuLaunchKernel(Function(LoadKernels(), "Store"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             parameters, nullptr));
    _exit(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS && !HasFailure() ? 0 : 1);
  };
  EXPECT_EXIT(store(), testing::ExitedWithCode(0), "error 700");
}

TEST_F(PeerTest, MappingsHaveTheirOwnAccess) {
  CUdeviceptr at = 0;
  MapOnOther(&at);
  CUmemAccessDesc both[] = {ReadWrite(0), ReadWrite(1)};
  ASSERT_CU(cuMemSetAccess(at, kChunk, both, 2));
  unsigned long long flags = 0;
  CUmemLocation first = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ASSERT_CU(cuMemGetAccess(&flags, &first, at));
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  EXPECT_CU(StoreFromFirst(at, 21));
  EXPECT_EQ(Read(at), 21u);
  both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  ASSERT_CU(cuMemSetAccess(at, kChunk, both, 1));
  ASSERT_CU(cuMemGetAccess(&flags, &first, at));
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_NONE});
  ASSERT_CU(cuCtxSetCurrent(other_));  // which still has it
  EXPECT_EQ(Read(at), 21u);
  both[0].location.id = 2;
  EXPECT_EQ(cuMemSetAccess(at, kChunk, both, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(at, kChunk));
  EXPECT_CU(cuMemAddressFree(at, kChunk));
}

// A program's mapping is not what peer access is about.
TEST_F(PeerTest, PeerAccessDoesNotReachMappings) {
  auto store = [this] {
    CUdeviceptr at = 0;
    MapOnOther(&at);
    auto access = ReadWrite(1);
    EXPECT_CU(cuMemSetAccess(at, kChunk, &access, 1));
    EXPECT_CU(cuCtxEnablePeerAccess(other_, 0));
    CUresult result = StoreFromFirst(at, 2);
    _exit(result == CUDA_ERROR_ILLEGAL_ADDRESS && !HasFailure() ? 0 : 1);
  };
  EXPECT_EXIT(store(), testing::ExitedWithCode(0), "error 700");
}

// As on an H200: copies reach plain allocations from every device, but a mapping only from devices
// with access, or when a peer copy names its device's context.
TEST_F(PeerTest, CopiesOfMappingsNeedAccessOrAPeerCopy) {
  CUdeviceptr at = 0, own = 0;
  MapOnOther(&at);
  auto access = ReadWrite(1);
  ASSERT_CU(cuMemSetAccess(at, kChunk, &access, 1));
  ASSERT_CU(cuMemAlloc(&own, 16));
  ASSERT_CU(cuMemsetD32(own, 31, 4));
  CUstream stream = NewStream();
  uint32_t value = 32, back = 0;
  EXPECT_EQ(cuMemcpyDtoD(at, own, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoDAsync(at, own, 4, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoDAsync(at, &value, 4, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(&back, at, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyPeer(at, context_, own, context_, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemcpyPeer(at, other_, own, context_, 4));
  EXPECT_CU(cuCtxSynchronize());  // between devices a copy may return before it is done
  CUDA_MEMCPY3D_PEER copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = at;
  copy.srcContext = other_;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = &back;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  EXPECT_CU(cuMemcpy3DPeerAsync(&copy, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(back, 31u);
  access = ReadWrite(0);
  ASSERT_CU(cuMemSetAccess(at, kChunk, &access, 1));
  EXPECT_CU(cuMemcpyHtoDAsync(at, &value, 4, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Read(at), 32u);
  EXPECT_CU(cuMemUnmap(at, kChunk));
  EXPECT_CU(cuMemAddressFree(at, kChunk));
}

TEST_F(PeerTest, FillsAndStreamValuesNeedAccess) {
  CUdeviceptr theirs = AllocateOnOther(1);
  CUstream stream = NewStream();
  EXPECT_EQ(cuMemsetD32Async(theirs, 2, 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWriteValue32(stream, theirs, 2, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuCtxEnablePeerAccess(other_, 0));
  EXPECT_CU(cuMemsetD32Async(theirs, 2, 1, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Read(theirs), 2u);
  EXPECT_CU(cuStreamWriteValue32(stream, theirs, 3, 0));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Read(theirs), 3u);
  EXPECT_CU(cuCtxDisablePeerAccess(other_));
}

TEST_F(PeerTest, PeerCopiesCannotBeCaptured) {
  CUdeviceptr theirs = AllocateOnOther(1), own = 0;
  ASSERT_CU(cuMemAlloc(&own, 4));
  CUstream stream = NewStream();
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(cuMemcpyPeerAsync(theirs, other_, own, context_, 4, stream),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// Imported memory belongs to the device that it was created on, whatever context is current.
TEST_F(PeerTest, ImportedMemoryKeepsItsDevice) {
  CUmemGenericAllocationHandle created = 0, imported = 0;
  auto properties = ChunkProperties(1);
  ASSERT_CU(cuMemCreate(&created, kChunk, &properties, 0));
  int fd = -1;
  constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  ASSERT_CU(cuMemExportToShareableHandle(&fd, created, kDescriptor, 0));
  ASSERT_CU(cuMemImportFromShareableHandle(
      &imported, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kDescriptor));
  close(fd);
  CUmemAllocationProp found = {};
  ASSERT_CU(cuMemGetAllocationPropertiesFromHandle(&found, imported));
  EXPECT_EQ(found.location.id, 1);
  EXPECT_CU(cuMemRelease(imported));
  EXPECT_CU(cuMemRelease(created));
}

TEST_F(PeerTest, ALibraryHasItsOwnGlobalsOnEachDevice) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_CU(cuLibraryLoadData(&library, Kernels("test_kernels.ptx").c_str(), nullptr, nullptr, 0,
                              nullptr, nullptr, 0));
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "AddTable"));
  CUdeviceptr counters[2] = {};
  CUcontext contexts[2] = {context_, other_};
  for (int device = 0; device < 2; ++device) {
    ASSERT_CU(cuCtxSetCurrent(contexts[device]));
    size_t bytes = 0;
    ASSERT_CU(cuLibraryGetGlobal(&counters[device], &bytes, library, "counter"));
    int ordinal = -1;
    ASSERT_CU(
        cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, counters[device]));
    EXPECT_EQ(ordinal, device);
    ASSERT_CU(cuMemsetD32(counters[device], 100 * (device + 1), 1));
  }
  EXPECT_NE(counters[0], counters[1]);
  for (int device = 0; device < 2; ++device) {
    ASSERT_CU(cuCtxSetCurrent(contexts[device]));
    CUfunction function = nullptr;
    ASSERT_CU(cuKernelGetFunction(&function, kernel));
    CUdeviceptr target = 0;
    ASSERT_CU(cuMemAlloc(&target, 16));
    void* parameters[] = {&target};
    for (CUfunction form : {function, reinterpret_cast<CUfunction>(kernel)}) {
      ASSERT_CU(cuMemsetD32(target, 0, 4));
      ASSERT_CU(cuLaunchKernel(form, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr));
      EXPECT_EQ(Read(target), 100u * (device + 1) + 10);
    }
    EXPECT_CU(cuMemFree(target));
  }
  // A function belongs to its context.
  ASSERT_CU(cuCtxSetCurrent(other_));
  CUfunction of_other = nullptr;
  ASSERT_CU(cuKernelGetFunction(&of_other, kernel));
  ASSERT_CU(cuCtxSetCurrent(context_));
  CUdeviceptr target = 0;
  void* parameters[] = {&target};
  EXPECT_EQ(cuLaunchKernel(of_other, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuLibraryUnload(library));
  unsigned count = 0;
  EXPECT_EQ(
      cuFuncGetAttribute(reinterpret_cast<int*>(&count), CU_FUNC_ATTRIBUTE_NUM_REGS, of_other),
      CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(PeerTest, ALibrarysGlobalsStartAgainWithTheirContext) {
  CUlibrary library = nullptr;
  ASSERT_CU(cuLibraryLoadData(&library, Kernels("test_kernels.ptx").c_str(), nullptr, nullptr, 0,
                              nullptr, nullptr, 0));
  CUdeviceptr counter = 0;
  ASSERT_CU(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  ASSERT_CU(cuMemsetD32(counter, 1000, 1));
  ASSERT_CU(cuDevicePrimaryCtxReset(0));
  ASSERT_CU(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  EXPECT_EQ(Read(counter), 7u);
  EXPECT_CU(cuLibraryUnload(library));
}

}  // namespace
}  // namespace softgpu
