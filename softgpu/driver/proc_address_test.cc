// Lookups by name, version and stream form; device identity; error texts.
#include <dlfcn.h>

#include <cstring>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

void* Lookup(const char* name, int version, cuuint64_t flags = 0,
             CUdriverProcAddressQueryResult* status = nullptr) {
  void* function = nullptr;
  EXPECT_CU(cuGetProcAddress_v2(name, &function, version, flags, status));
  return function;
}

void* Symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

TEST(ProcAddressTest, VersionsChooseTheForm) {
  EXPECT_EQ(Lookup("cuMemAlloc", 3020), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Lookup("cuMemAlloc", 13000), Symbol("cuMemAlloc_v2"));
  EXPECT_EQ(Lookup("cuCtxCreate", 11000), Symbol("cuCtxCreate_v2"));
  EXPECT_EQ(Lookup("cuCtxCreate", 12040), Symbol("cuCtxCreate_v3"));
  EXPECT_EQ(Lookup("cuCtxCreate", 12050), Symbol("cuCtxCreate_v4"));
  EXPECT_EQ(Lookup("cuGetProcAddress", 11030), Symbol("cuGetProcAddress"));
  EXPECT_EQ(Lookup("cuGetProcAddress", 12000), Symbol("cuGetProcAddress_v2"));
  EXPECT_EQ(Lookup("cuDevicePrimaryCtxRelease", 7000), Symbol("cuDevicePrimaryCtxRelease"));
  EXPECT_EQ(Lookup("cuCtxGetDevice", 12000), Symbol("cuCtxGetDevice"));
  EXPECT_EQ(Lookup("cuCtxGetDevice", 13000), Symbol("cuCtxGetDevice_v2"));
  EXPECT_EQ(Lookup("cuStreamWaitValue32", 8000), Symbol("cuStreamWaitValue32"));
  EXPECT_EQ(Lookup("cuStreamGetCaptureInfo", 11030), Symbol("cuStreamGetCaptureInfo_v2"));
  EXPECT_EQ(Lookup("cuGraphAddNode", 12020), Symbol("cuGraphAddNode"));
  EXPECT_EQ(Lookup("cuGraphAddKernelNode", 12000), Symbol("cuGraphAddKernelNode_v2"));
}

TEST(ProcAddressTest, UnknownAndTooNewNames) {
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(Lookup("cuNothing", 13000, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(Lookup("cuLibraryLoadData", 11000, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  void* function = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &function, 99000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress_v2("", &function, 0, 0, &status), CUDA_ERROR_NOT_FOUND);
}

// Both tables, the one in the library and its dynamic symbols, agree.
TEST(ProcAddressTest, EveryNewestFormIsExported) {
  for (const char* name : {"cuInit", "cuLaunchKernel", "cuMemMap", "cuGraphLaunch",
                           "cuStreamBeginCapture", "cuEventElapsedTime", "cuLibraryGetKernel"}) {
    Dl_info info = {};
    void* function = Lookup(name, 13000);
    ASSERT_NE(function, nullptr) << name;
    ASSERT_NE(dladdr(function, &info), 0) << name;
    EXPECT_EQ(strncmp(info.dli_sname, name, strlen(name)), 0) << info.dli_sname;
  }
}

class PerThreadTest : public DeviceTest {};

TEST_F(PerThreadTest, StreamZeroIsTheThreadsOwn) {
  auto wait = reinterpret_cast<decltype(&cuStreamWaitValue32_v2)>(
      Lookup("cuStreamWaitValue32", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  auto query = reinterpret_cast<decltype(&cuStreamQuery)>(
      Lookup("cuStreamQuery", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  auto* flag = NewFlag();
  ASSERT_CU(wait(nullptr, Address(flag), 1, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_EQ(query(nullptr), CUDA_ERROR_NOT_READY);
  std::thread([&] {  // another thread's stream 0 is another stream
    ASSERT_CU(cuCtxSetCurrent(context_));
    EXPECT_CU(query(nullptr));
  })
      .join();
  __atomic_store_n(const_cast<uint32_t*>(flag), 1, __ATOMIC_RELEASE);
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_CU(query(nullptr));
}

class IdentityTest : public DeviceTest {};

TEST_F(IdentityTest, DeviceSaysWhatItIs) {
  char name[64] = {}, bus[32] = {};
  ASSERT_CU(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "Software device (PTX interpreter)");
  CUdevice found = -1;
  ASSERT_CU(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
  ASSERT_CU(cuDeviceGetByPCIBusId(&found, bus));
  EXPECT_EQ(found, 0);
  int value = -1, version = 0;
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 9);
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
  EXPECT_EQ(value, 1);
  ASSERT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99),
            CUDA_ERROR_INVALID_DEVICE);
  ASSERT_CU(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  const void* table = &table;
  CUuuid id = {};
  EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
}

TEST_F(IdentityTest, ErrorTexts) {
  const char* text = nullptr;
  ASSERT_CU(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  ASSERT_CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a code that no version has
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST_F(IdentityTest, ContextStack) {
  CUcontext made = nullptr, current = nullptr;
  ASSERT_CU(cuCtxCreate(&made, nullptr, 0, 0));
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, made);
  std::thread([&] {
    ASSERT_CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    ASSERT_CU(cuCtxPushCurrent(made));
    ASSERT_CU(cuCtxPushCurrent(context_));
    ASSERT_CU(cuCtxPopCurrent(&current));
    EXPECT_EQ(current, context_);
    ASSERT_CU(cuCtxDestroy(made));
    ASSERT_CU(cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
  }).join();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_CU(cuCtxSetCurrent(context_));
  EXPECT_CU(cuCtxSynchronize());
  unsigned flags = 0;
  int active = 0;
  ASSERT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
}

}  // namespace
}  // namespace softgpu
