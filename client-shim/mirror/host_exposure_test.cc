// Which pinned memory is exposed to the device, when, and where it lies there.
#include "client-shim/mirror/host_exposure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <string>

#include "client-shim/memory/device_ranges.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

// Exposing starts the thread of the exchange, which would look at the memory of other tests here.
const bool no_exchange = [] {
  const char* others = std::getenv("LONGWIRE_DISABLE");
  const std::string all = std::string(others == nullptr ? "" : others) + ",live-exchange";
  return setenv("LONGWIRE_DISABLE", all.c_str(), 1) == 0;
}();

using ::testing::Contains;
using ::testing::IsEmpty;
using testing::kMiB;
using ::testing::Not;
using testing::Record;

constexpr uint64_t kPage = 4096;

class HostExposureTest : public testing::WithContext {
 protected:
  void TearDown() override {
    for (void* memory : allocated_) EXPECT_EQ(FreeHost(memory), CUDA_SUCCESS);
    EXPECT_FALSE(AnyMirrors());
    WithContext::TearDown();
  }
  uint64_t Allocate(uint64_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(AllocateHost(bytes, 0, &memory), CUDA_SUCCESS);
    allocated_.push_back(memory);
    fake_.Take();
    return reinterpret_cast<uint64_t>(memory);
  }
  void FreeAll() {
    for (void* memory : allocated_) EXPECT_EQ(FreeHost(memory), CUDA_SUCCESS);
    allocated_.clear();
  }
  static bool IsExposed(uint64_t address) {
    uint64_t device = 0;
    return FindMirror(address, &device);
  }
  template <size_t count>
  static CUresult Arguments(const std::array<uint64_t, count>& words) {
    return ExposeArguments(std::as_bytes(std::span(words)));
  }

  std::vector<void*> allocated_;
};

TEST_F(HostExposureTest, AllocatedMemoryKeepsItsAddress) {
  const uint64_t address = Allocate(100);
  EXPECT_FALSE(IsExposed(address));
  uint64_t device = 0;
  EXPECT_EQ(ExposeHost(address + 7, &device), CUDA_SUCCESS);
  EXPECT_EQ(device, address + 7);
  std::vector<std::string> names = fake_.TakeNames();
  EXPECT_THAT(names, Contains("lwMap"));
  EXPECT_THAT(names, Contains("lwMirrorAdd"));
  EXPECT_TRUE(IsExposed(address));
  // The second time nothing is left to do.
  EXPECT_EQ(ExposeHost(address, &device), CUDA_SUCCESS);
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(HostExposureTest, OtherMemoryIsNotExposed) {
  const uint64_t address = Allocate(100);
  uint64_t device = 0;
  EXPECT_EQ(ExposeHost(address + 100, &device), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ExposeHost(address - 1, &device), CUDA_ERROR_INVALID_VALUE);
  char pageable = 0;
  uint64_t unchanged = reinterpret_cast<uint64_t>(&pageable);
  EXPECT_EQ(ExposeHost(unchanged, &device), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ToDeviceAddress(&unchanged), CUDA_SUCCESS);
  EXPECT_EQ(unchanged, reinterpret_cast<uint64_t>(&pageable));
  EXPECT_THAT(fake_.TakeNames(), IsEmpty());
}

TEST_F(HostExposureTest, OnlyWhatPointsIntoPinnedMemoryIsExposed) {
  const uint64_t first = Allocate(kMiB), second = Allocate(kMiB);
  EXPECT_EQ(Arguments(std::array<uint64_t, 3>{0, 42, first - 1}), CUDA_SUCCESS);
  EXPECT_EQ(Arguments(std::array<uint64_t, 1>{first + kMiB}), CUDA_SUCCESS);  // just behind
  EXPECT_FALSE(IsExposed(first));
  EXPECT_FALSE(IsExposed(second));
  EXPECT_EQ(Arguments(std::array<uint64_t, 2>{42, first + kMiB - 1}), CUDA_SUCCESS);
  EXPECT_TRUE(IsExposed(first));
  EXPECT_FALSE(IsExposed(second));
  EXPECT_EQ(Arguments(std::array<uint64_t, 2>{first, second}), CUDA_SUCCESS);
  EXPECT_TRUE(IsExposed(second));
}

TEST_F(HostExposureTest, PointersAreAlignedAndWhole) {
  const uint64_t address = Allocate(kMiB);
  std::array<std::byte, 20> arguments{};
  std::memcpy(arguments.data() + 4, &address, sizeof(address));  // not aligned
  EXPECT_EQ(ExposeArguments(arguments), CUDA_SUCCESS);
  std::memcpy(arguments.data() + 16, &address, 4);  // the half of one
  EXPECT_EQ(ExposeArguments(arguments), CUDA_SUCCESS);
  EXPECT_FALSE(IsExposed(address));
  std::memcpy(arguments.data() + 8, &address, sizeof(address));
  EXPECT_EQ(ExposeArguments(arguments), CUDA_SUCCESS);
  EXPECT_TRUE(IsExposed(address));
}

TEST_F(HostExposureTest, StructuresAreSearchedAndBulkDataIsNot) {
  const uint64_t address = Allocate(kMiB);
  constexpr size_t kSearched = size_t{256} << 10;
  std::vector<uint64_t> words(kSearched / 8 + 1);
  words[kSearched / 8 - 1] = address;
  ExposePointees(std::as_bytes(std::span(words)));
  EXPECT_FALSE(IsExposed(address));
  words.pop_back();
  ExposePointees(std::as_bytes(std::span(words)));
  EXPECT_TRUE(IsExposed(address));
}

TEST_F(HostExposureTest, SmallAllocationsAreExposedTogether) {
  const uint64_t first = Allocate(100), second = Allocate(100), large = Allocate(kMiB);
  EXPECT_EQ(second, first + kPage);
  uint64_t device = 0;
  EXPECT_EQ(ExposeHost(first, &device), CUDA_SUCCESS);
  EXPECT_TRUE(IsExposed(second));
  EXPECT_FALSE(IsExposed(large));
  // A later one in the same block is exchanged, too.
  const uint64_t third = Allocate(100);
  EXPECT_EQ(third, second + kPage);
  EXPECT_TRUE(IsExposed(third));
}

TEST_F(HostExposureTest, FreedMemoryIsHidden) {
  const uint64_t address = Allocate(kMiB);
  uint64_t device = 0;
  EXPECT_EQ(ExposeHost(address, &device), CUDA_SUCCESS);
  const uint64_t leased = fake_.leased();
  fake_.Take();
  FreeAll();
  EXPECT_FALSE(IsExposed(address));
  std::vector<std::string> names = fake_.TakeNames();
  EXPECT_THAT(names, Contains("lwMirrorRemove"));
  EXPECT_THAT(names, Contains("lwUnmap"));
  EXPECT_EQ(fake_.leased(), leased - 2 * kMiB);
  EXPECT_EQ(ExposeHost(address, &device), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(HostExposureTest, WithoutDeviceMemoryItIsNotExposed) {
  const uint64_t address = Allocate(kMiB);
  fake_.OnCall<calls::lwLease>([](const Record&) {
    return testing::Reply{CUDA_ERROR_OUT_OF_MEMORY, {}};
  });
  uint64_t device = 0;
  EXPECT_EQ(ExposeHost(address, &device), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Arguments(std::array<uint64_t, 1>{address}), CUDA_ERROR_OUT_OF_MEMORY);
  ExposePointees(std::as_bytes(std::span(&address, 1)));  // ignores it
  EXPECT_FALSE(IsExposed(address));
  EXPECT_THAT(fake_.TakeNames(), Not(Contains("lwMirrorAdd")));
}

// Memory of the program that is registered as pinned.
class RegisteredTest : public HostExposureTest {
 protected:
  void SetUp() override {
    HostExposureTest::SetUp();
    void* memory =
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    memory_ = static_cast<char*>(memory);
  }
  void TearDown() override {
    HostExposureTest::TearDown();
    munmap(memory_, 4 * kPage);
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_); }
  CUresult Register(uint64_t offset, uint64_t bytes) {
    return RegisterHost(memory_ + offset, bytes, 0);
  }

  char* memory_ = nullptr;
};

TEST_F(RegisteredTest, ItHasAnotherAddressOnTheDevice) {
  ASSERT_EQ(Register(100, 2 * kPage), CUDA_SUCCESS);
  fake_.Take();
  uint64_t device = 0, last = 0;
  EXPECT_EQ(ExposeHost(address() + 150, &device), CUDA_SUCCESS);
  std::vector<Record> maps = fake_.TakeOnly<calls::lwMap>();
  ASSERT_EQ(maps.size(), 1u);
  const uint64_t base = maps[0].As<calls::lwMap>().address;
  EXPECT_EQ(device, base + 150);  // the offset in the page is kept
  EXPECT_EQ(ExposeHost(address() + 100 + 2 * kPage - 1, &last), CUDA_SUCCESS);
  EXPECT_EQ(last, base + 100 + 2 * kPage - 1);
  EXPECT_EQ(ExposeHost(address() + 99, &last), CUDA_ERROR_INVALID_VALUE);
  DeviceRange range;
  EXPECT_TRUE(FindForeignRange(base + 100, &range));
  EXPECT_EQ(range.bytes, 2 * kPage);
  uint64_t found = address() + 200;
  EXPECT_EQ(ToDeviceAddress(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, base + 200);
  EXPECT_EQ(UnregisterHost(memory_ + 100), CUDA_SUCCESS);
  EXPECT_FALSE(FindForeignRange(base + 100, &range));
  EXPECT_FALSE(IsExposed(address() + 100));
}

TEST_F(RegisteredTest, ArgumentsDoNotExposeIt) {
  ASSERT_EQ(Register(0, kPage), CUDA_SUCCESS);
  Allocate(kMiB);  // there is something to search for
  EXPECT_EQ(Arguments(std::array<uint64_t, 1>{address()}), CUDA_SUCCESS);
  EXPECT_FALSE(IsExposed(address()));
  EXPECT_EQ(UnregisterHost(memory_), CUDA_SUCCESS);
}

TEST_F(RegisteredTest, RangesDoNotOverlap) {
  ASSERT_EQ(Register(kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(Register(kPage, kPage), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(Register(0, kPage + 1), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(Register(2 * kPage - 1, 2), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(Register(0, 4 * kPage), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(Register(0, kPage), CUDA_SUCCESS);  // they touch
  EXPECT_EQ(Register(2 * kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(UnregisterHost(memory_ + kPage + 1), CUDA_ERROR_INVALID_VALUE);
  for (uint64_t offset : {uint64_t{0}, kPage, 2 * kPage}) {
    EXPECT_EQ(UnregisterHost(memory_ + offset), CUDA_SUCCESS);
  }
  EXPECT_EQ(UnregisterHost(memory_), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  const uint64_t allocated = Allocate(100);
  EXPECT_EQ(UnregisterHost(reinterpret_cast<void*>(allocated)), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(RegisteredTest, PinnedIsWhatOneRangeCovers) {
  ASSERT_EQ(Register(kPage, kPage), CUDA_SUCCESS);
  EXPECT_TRUE(IsPinned(memory_ + kPage, kPage));
  EXPECT_TRUE(IsPinned(memory_ + 2 * kPage - 1, 1));
  EXPECT_FALSE(IsPinned(memory_ + kPage, kPage + 1));
  EXPECT_FALSE(IsPinned(memory_ + kPage - 1, 1));
  EXPECT_FALSE(IsPinned(memory_ + 2 * kPage, 1));
  ASSERT_EQ(Register(2 * kPage, kPage), CUDA_SUCCESS);
  EXPECT_FALSE(IsPinned(memory_ + kPage, 2 * kPage));  // two ranges
  EXPECT_EQ(UnregisterHost(memory_ + kPage), CUDA_SUCCESS);
  EXPECT_EQ(UnregisterHost(memory_ + 2 * kPage), CUDA_SUCCESS);
  EXPECT_FALSE(IsPinned(memory_ + kPage, 1));
}

}  // namespace
}  // namespace longwire::shim
