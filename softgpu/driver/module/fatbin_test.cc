// The fat binary reader on damaged and hostile containers: it must answer, never read past the end.
#include "softgpu/driver/module/fatbin.h"

#include <cstring>
#include <memory>
#include <random>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

// Reads from a heap block of exactly this size, so that sanitizers see a read past the end.
CUresult Extract(const std::string& bytes, std::string* ptx = nullptr) {
  auto copy = std::make_unique<char[]>(bytes.size());
  memcpy(copy.get(), bytes.data(), bytes.size());
  std::string text, reason;
  CUresult result = ExtractFromContainer(copy.get(), bytes.size(), &text, &reason);
  if (ptx != nullptr) *ptx = text;
  return result;
}

TEST(FatbinTest, ChoosesTheHighestArchitectureThatRuns) {
  std::string ptx;
  ASSERT_CU(Extract(Kernels("plain.fatbin"), &ptx));  // holds 75, 90 and 100
  EXPECT_NE(ptx.find(".target sm_90"), std::string::npos);
  ASSERT_CU(Extract(Kernels("zstd.fatbin"), &ptx));
  EXPECT_NE(ptx.find(".target sm_75"), std::string::npos);
  EXPECT_EQ(ptx.find('\0'), std::string::npos);
}

TEST(FatbinTest, TruncatedContainersAreRefused) {
  for (const char* file : {"plain.fatbin", "zstd.fatbin", "lz4.fatbin"}) {
    std::string bytes = Kernels(file);
    for (size_t size = 0; size < bytes.size(); size += 1 + size / 16) {
      EXPECT_NE(Extract(bytes.substr(0, size)), CUDA_SUCCESS) << file << " " << size;
    }
  }
}

TEST(FatbinTest, OversizedClaimsAreRefused) {
  std::string bytes = Kernels("lz4.fatbin");
  uint64_t huge = uint64_t{1} << 40;
  memcpy(bytes.data() + 16 + 56, &huge, sizeof huge);  // uncompressed size of the first entry
  EXPECT_EQ(Extract(bytes), CUDA_ERROR_INVALID_IMAGE);
}

TEST(FatbinTest, RandomDamageNeverCrashes) {
  std::mt19937 random(7);
  int refused = 0;
  for (const char* file : {"zstd.fatbin", "lz4.fatbin"}) {
    const std::string bytes = Kernels(file);
    for (int round = 0; round < 300; ++round) {
      std::string damaged = bytes;
      size_t reach = round % 2 ? damaged.size() : 128;  // every second time in the headers
      for (int i = 0; i < 4; ++i) damaged[random() % reach] ^= static_cast<char>(1 << random() % 8);
      refused += Extract(damaged) != CUDA_SUCCESS;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace softgpu
