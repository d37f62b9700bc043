// Where the driver's library gets memory, and that everybody else's mappings stay what they were.
#include "server/worker/process/driver_mappings.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>

namespace longwire::worker {
namespace {

constexpr uint64_t kFirst = 0x400000000000;
constexpr size_t kBytes = size_t{3} << 20;

using Map = void* (*)(void* address, size_t bytes);

Map In(const char* library) {
  void* loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(loaded, nullptr) << dlerror();
  return loaded == nullptr ? nullptr : reinterpret_cast<Map>(dlsym(loaded, "MapHere"));
}

uint64_t At(void* mapped) { return reinterpret_cast<uint64_t>(mapped); }

TEST(DriverMappings, OnesOfTheDriverLieOneAfterTheOther) {
  Map driver = In(DRIVER_LIBRARY), other = In(OTHER_LIBRARY);
  ASSERT_NE(driver, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_LT(kFirst + (uint64_t{16} << 40), At(driver(nullptr, kBytes)));  // not switched on
  FixDriverMappings();
  void* first = driver(nullptr, kBytes);
  EXPECT_EQ(At(first), kFirst);
  EXPECT_GT(At(other(nullptr, kBytes)), kFirst + (uint64_t{16} << 40));
  void* own = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_GT(At(own), kFirst + (uint64_t{16} << 40));
  EXPECT_GT(At(driver(nullptr, 4096)), kFirst + (uint64_t{16} << 40));  // too small to count
  munmap(first, kBytes);
  // Also behind one that is gone.
  EXPECT_EQ(At(driver(nullptr, kBytes)), kFirst + (uint64_t{6} << 20));
  // What lies in its way already is left alone.
  void* in_the_way = reinterpret_cast<void*>(kFirst + (uint64_t{12} << 20));
  ASSERT_EQ(other(in_the_way, 4096), in_the_way);
  EXPECT_GT(At(driver(nullptr, kBytes)), kFirst + (uint64_t{16} << 40));
  void* wish = reinterpret_cast<void*>(kFirst + (uint64_t{1} << 40));
  EXPECT_EQ(driver(wish, kBytes), wish);
}

}  // namespace
}  // namespace longwire::worker
