// Attributes of functions: known from the load on, and what the program sets.
#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

struct Loaded {
  Loaded() {
    EXPECT_OK(cuModuleLoadData(&module, "the fake driver reads no code"));
    EXPECT_OK(cuModuleGetFunction(&function, module, "kernel"));
  }
  ~Loaded() { EXPECT_OK(cuModuleUnload(module)); }
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

TEST(Attributes, AFirstLaunchWaitsForNoReply) {
  Bench bench;
  Loaded loaded;
  CUdeviceptr data = 0;
  ASSERT_OK(cuMemAlloc_v2(&data, 4096));
  uint64_t before = RoundTrips();
  uint32_t count = 16, add = 1;
  void* parameters[] = {&data, &count, &add};
  EXPECT_OK(cuLaunchKernel(loaded.function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  int value = 0;
  EXPECT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, loaded.function));
  EXPECT_EQ(512, value);
  EXPECT_EQ(before, RoundTrips());
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuMemFree_v2(data));
}

TEST(Attributes, WhatTheProgramSetsIsWhatItReads) {
  Bench bench;
  Loaded loaded, other;
  constexpr auto kCarveout = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  int value = 0;
  EXPECT_OK(cuFuncGetAttribute(&value, kCarveout, loaded.function));
  EXPECT_EQ(-1, value);
  EXPECT_OK(cuFuncSetAttribute(loaded.function, kCarveout, 50));
  EXPECT_OK(cuFuncGetAttribute(&value, kCarveout, loaded.function));
  EXPECT_EQ(50, value);
  EXPECT_OK(cuFuncGetAttribute(&value, kCarveout, other.function));
  EXPECT_EQ(-1, value) << "another function's";
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(loaded.function, kCarveout, 101));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuFuncSetAttribute(loaded.function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
  // What the worker makes of it has gone before the next test looks at errors.
  EXPECT_OK(cuCtxSynchronize());
}

}  // namespace
}  // namespace longwire::joined
