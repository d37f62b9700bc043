// Limits of contexts: which the client knows after it has asked once, and which it asks for again.
#include "tests/wire_inprocess/joined.h"

namespace longwire::joined {
namespace {

size_t heap = 8 << 20;

CUresult GetLimit(size_t* value, CUlimit limit) {
  *value = limit == CU_LIMIT_MALLOC_HEAP_SIZE ? heap : 1024;
  return CUDA_SUCCESS;
}

CUresult SetLimit(CUlimit limit, size_t value) {
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) heap = value;
  return CUDA_SUCCESS;
}

// Before the process's one session is opened, by whichever test comes first.
[[maybe_unused]] const DriverAdjustment adjusted = AdjustDriver() = [](DriverTable* table) {
  table->cuCtxGetLimit = GetLimit;
  table->cuCtxSetLimit = SetLimit;
};

// How many replies are waited for when the limit is asked for twice.
uint64_t TripsOfTwo(CUlimit limit) {
  uint64_t before = RoundTrips();
  size_t value = 0;
  EXPECT_OK(cuCtxGetLimit(&value, limit));
  EXPECT_OK(cuCtxGetLimit(&value, limit));
  return RoundTrips() - before;
}

TEST(Limits, AreAskedForOnceUntilTheProgramSetsThem) {
  Bench bench;
  EXPECT_EQ(1u, TripsOfTwo(CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_EQ(0u, TripsOfTwo(CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_EQ(1u, TripsOfTwo(CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
  EXPECT_EQ(1u, TripsOfTwo(CU_LIMIT_MALLOC_HEAP_SIZE));
  size_t value = 0;
  EXPECT_OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(size_t{16} << 20, value);
  EXPECT_EQ(1u, TripsOfTwo(CU_LIMIT_PRINTF_FIFO_SIZE));
}

TEST(Limits, TheStackIsAskedForEachTime) {
  Bench bench;
  EXPECT_EQ(2u, TripsOfTwo(CU_LIMIT_STACK_SIZE));
}

TEST(Limits, AreAContextsOwn) {
  Bench bench;
  TripsOfTwo(CU_LIMIT_PRINTF_FIFO_SIZE);
  CUcontext own = nullptr;
  ASSERT_OK(cuCtxCreate_v4(&own, nullptr, 0, 0));
  EXPECT_EQ(1u, TripsOfTwo(CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_OK(cuCtxDestroy(own));
  EXPECT_EQ(0u, TripsOfTwo(CU_LIMIT_PRINTF_FIFO_SIZE));
}

}  // namespace
}  // namespace longwire::joined
