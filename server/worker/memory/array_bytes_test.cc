// Bounds of what the driver takes for arrays, against what it took on an H200 with driver 580.
#include "server/worker/memory/array_bytes.h"

#include <gtest/gtest.h>

namespace longwire::worker {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

CUDA_ARRAY3D_DESCRIPTOR Shape(size_t width, size_t height, size_t depth, unsigned channels = 1,
                              unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, channels, flags};
}

struct Measured {
  CUDA_ARRAY3D_DESCRIPTOR shape;
  unsigned levels;
  uint64_t bytes;  // that one array took: of large ones, whose pages are their own
};

TEST(ArrayBytes, IsNeverLessThanWhatTheDriverTook) {
  const Measured all[] = {
      {Shape(1000, 1000, 0), 1, 4 * kMiB},      {Shape(1025, 1025, 0, 4), 1, 20 * kMiB},
      {Shape(65536, 1, 0, 4), 1, 8 * kMiB},     {Shape(1, 65536, 0), 1, 4 * kMiB},
      {Shape(129, 129, 129), 1, 12 * kMiB},     {Shape(33, 33, 2048, 1, 1), 1, 24 * kMiB},
      {Shape(1, 1, 4096), 1, 2 * kMiB},         {Shape(8192, 8192, 0, 4), 1, 1024 * kMiB},
      {Shape(1024, 1024, 0, 4), 11, 22 * kMiB}, {Shape(129, 129, 129), 8, 12 * kMiB},
      {Shape(33, 33, 512, 1, 1), 6, 8 * kMiB},  {Shape(17, 129, 33), 1, kMiB}};
  for (const Measured& one : all) {
    uint64_t bound = ArrayBytes(one.shape, one.levels);
    EXPECT_GE(bound, one.bytes) << one.shape.Width << " x " << one.shape.Height;
    EXPECT_LE(bound, 2 * one.bytes) << one.shape.Width << " x " << one.shape.Height;
  }
}

TEST(ArrayBytes, SmallArraysShareAPage) {
  EXPECT_EQ(ArrayBytes(Shape(1, 0, 0)), 512u);
  EXPECT_EQ(ArrayBytes(Shape(64, 64, 0)), 16 * kKiB);
}

TEST(ArrayBytes, AbsurdShapesDoNotOverflow) {
  EXPECT_EQ(ArrayBytes(Shape(SIZE_MAX, 1, 1)), UINT64_MAX);
  EXPECT_EQ(ArrayBytes(Shape(size_t{1} << 46, size_t{1} << 46, size_t{1} << 46, 4)), UINT64_MAX);
  EXPECT_EQ(ArrayBytes(Shape(size_t{1} << 45, 1, 1), UINT32_MAX), UINT64_MAX);
  CUDA_ARRAY3D_DESCRIPTOR strange = Shape(16, 16, 16, 0xffffffff, 0xffffffff);
  strange.Format = static_cast<CUarray_format>(0x7fffffff);
  EXPECT_GE(ArrayBytes(strange, 0), 16u * 16 * 16 * 16);
}

TEST(LimitBytes, CountFromWhatAContextHasAtFirst) {
  DriverTable driver{};
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 132 : 2048;
    return CUDA_SUCCESS;
  };
  EXPECT_EQ(LimitBytes(driver, 0, CU_LIMIT_STACK_SIZE, 1024), 0u);
  EXPECT_EQ(LimitBytes(driver, 0, CU_LIMIT_STACK_SIZE, 4096), 792 * kMiB);
  EXPECT_EQ(LimitBytes(driver, 0, CU_LIMIT_STACK_SIZE, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(LimitBytes(driver, 0, CU_LIMIT_MALLOC_HEAP_SIZE, 8 * kMiB), 0u);
  EXPECT_EQ(LimitBytes(driver, 0, CU_LIMIT_MALLOC_HEAP_SIZE, 256 * kMiB), 248 * kMiB);
  EXPECT_EQ(LimitBytes(driver, 0, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128), 0u);
}

}  // namespace
}  // namespace longwire::worker
