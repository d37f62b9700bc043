// What programs get when no server is configured, and before cuInit.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "client-shim/support/threads.h"

namespace {

TEST(WithoutSession, WhatNeedsNoDeviceAnswers) {
  int version = 0;
  EXPECT_EQ(CUDA_SUCCESS, cuDriverGetVersion(&version));
  EXPECT_GE(version, 13000);
  const char* text = nullptr;
  EXPECT_EQ(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ("CUDA_ERROR_ILLEGAL_ADDRESS", text);
  EXPECT_EQ(CUDA_SUCCESS, cuGetErrorString(CUDA_SUCCESS, &text));
  EXPECT_STREQ("no error", text);
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a code that no version has
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(12345), &text));
  EXPECT_EQ(nullptr, text);
}

TEST(WithoutSession, EverythingElseIsNotInitialized) {
  int count = 0;
  CUdeviceptr data = 0;
  CUcontext context = nullptr;
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc_v2(&data, 16));
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuStreamSynchronize(nullptr));
}

TEST(WithoutSession, NoHandleIsSaidFirstWhereTheDriverSaysItFirst) {
  CUkernel kernel = nullptr;
  const char* name = nullptr;
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetKernel(&kernel, nullptr, "name"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLibraryGetKernel(nullptr, nullptr, "name"));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncGetName(&name, nullptr));
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuModuleUnload(nullptr));
  CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuModuleGetLoadingMode(&mode));
}

TEST(WithoutSession, InitializingFindsNoDevice) {
  unsetenv("LONGWIRE_SERVER");
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuInit(1));
  EXPECT_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0));
  EXPECT_EQ(CUDA_ERROR_NO_DEVICE, cuInit(0));
  int count = 0;
  EXPECT_EQ(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&count));
}

void* Look(const char* name, int version, cuuint64_t flags, CUresult expected,
           CUdriverProcAddressQueryResult state) {
  void* function = reinterpret_cast<void*>(1);
  CUdriverProcAddressQueryResult found;
  EXPECT_EQ(expected, cuGetProcAddress_v2(name, &function, version, flags, &found)) << name;
  EXPECT_EQ(state, found) << name;
  return function;
}

template <class F>
void* Address(F* function) {
  return reinterpret_cast<void*>(function);
}

TEST(WithoutSession, LookupsGiveTheVariantOfTheVersion) {
  constexpr auto kFound = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_EQ(Address(&cuMemAlloc_v2), Look("cuMemAlloc", 3020, 0, CUDA_SUCCESS, kFound));
  EXPECT_EQ(Address(&cuCtxGetDevice), Look("cuCtxGetDevice", 12080, 0, CUDA_SUCCESS, kFound));
  EXPECT_EQ(Address(&cuCtxGetDevice_v2), Look("cuCtxGetDevice", 13000, 0, CUDA_SUCCESS, kFound));
  EXPECT_EQ(Address(&cuGetProcAddress), Look("cuGetProcAddress", 11030, 0, CUDA_SUCCESS, kFound));
  EXPECT_EQ(Address(&cuGetProcAddress_v2),
            Look("cuGetProcAddress", 12000, 0, CUDA_SUCCESS, kFound));
  EXPECT_EQ(Address(&cuLaunchKernel), Look("cuLaunchKernel", 7000, 1, CUDA_SUCCESS, kFound));
  EXPECT_NE(Address(&cuLaunchKernel), Look("cuLaunchKernel", 7000, 2, CUDA_SUCCESS, kFound));
  EXPECT_EQ(Address(&cuInit), Look("cuInit", 12000, 2, CUDA_SUCCESS, kFound));
}

TEST(WithoutSession, LookupsSayWhyTheyFindNothing) {
  constexpr auto kUnknown = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  EXPECT_EQ(nullptr, Look("cuNoSuchFunction", 12000, 0, CUDA_SUCCESS, kUnknown));
  EXPECT_NE(nullptr,
            Look("cuCheckpointProcessLock", 12080, 0, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS))
      << "what is refused is found, and says so when it is called";
  EXPECT_EQ(nullptr, Look("cuMemAllocAsync", 11010, 0, CUDA_SUCCESS,
                          CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
  Look("cuInit", 99000, 0, CUDA_ERROR_INVALID_VALUE, kUnknown);
  Look("", 0, 0, CUDA_SUCCESS, kUnknown);
}

}  // namespace
