// What the driver half's tests share: a fixture with a current primary context, and the kernels of
// test_kernels.cu as nvcc compiles them.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#define ASSERT_CU(call) ASSERT_EQ(call, CUDA_SUCCESS)
#define EXPECT_CU(call) EXPECT_EQ(call, CUDA_SUCCESS)

namespace softgpu {

constexpr size_t kChunk = size_t{2} << 20;  // bytes

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// LONGWIRE_TEST_KERNELS is the folder in which the build leaves the compiled kernels.
inline std::string Kernels(const std::string& file) {
  return ReadFile(std::string(LONGWIRE_TEST_KERNELS) + "/" + file);
}

inline CUmemAllocationProp ChunkProperties(int device = 0) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

inline CUmemAccessDesc ReadWrite(int device = 0) {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}

class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(cuInit(0));
    ASSERT_CU(cuDevicePrimaryCtxRetain(&context_, 0));
    ASSERT_CU(cuCtxSetCurrent(context_));
  }
  void TearDown() override {
    cuCtxSetCurrent(nullptr);
    cuDevicePrimaryCtxRelease(0);
  }

  CUmodule LoadKernels() {
    CUmodule module = nullptr;
    EXPECT_CU(cuModuleLoadData(&module, Kernels("test_kernels.ptx").c_str()));
    return module;
  }
  CUfunction Function(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }
  CUstream NewStream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream stream = nullptr;
    EXPECT_CU(cuStreamCreate(&stream, flags));
    return stream;
  }
  // A zeroed word of pinned host memory.
  volatile uint32_t* NewFlag() {
    void* pointer = nullptr;
    EXPECT_CU(cuMemHostAlloc(&pointer, 4096, 0));
    return static_cast<volatile uint32_t*>(pointer);
  }
  static CUdeviceptr Address(const volatile void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
  }

  CUcontext context_ = nullptr;
};

inline void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

}  // namespace softgpu
