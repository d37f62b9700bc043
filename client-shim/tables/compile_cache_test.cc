#include "client-shim/tables/compile_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace longwire::shim {
namespace {

namespace fs = std::filesystem;

wire::Digest KeyOf(std::string_view text) {
  CompileKey key;
  key.Add(text);
  return key.Finish();
}

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class CompileCacheTest : public testing::Test {
 protected:
  CompileCacheTest() {
    std::string pattern = (fs::temp_directory_path() / "longwire-cache-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~CompileCacheTest() override { fs::remove_all(folder_); }

  static std::string Found(const CompileCache& cache, std::string_view key) {
    auto bytes = cache.Find(KeyOf(key));
    if (!bytes) return "(missed)";
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }

  // The files of all entries.
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& one : fs::recursive_directory_iterator(folder_)) {
      if (one.is_regular_file() && one.path().filename() != "size") files.push_back(one.path());
    }
    return files;
  }

  uint64_t Stored() const {
    uint64_t sum = 0;
    for (const fs::path& file : Files()) sum += fs::file_size(file);
    return sum;
  }

  fs::path folder_;
};

TEST_F(CompileCacheTest, WhatOneProcessKeptAnotherFinds) {
  CompileCache one(folder_ / "a" / "b", 1 << 20), other(folder_ / "a" / "b", 1 << 20);
  EXPECT_EQ(Found(one, "kernel"), "(missed)");
  EXPECT_TRUE(one.Insert(KeyOf("kernel"), Bytes("code")));
  EXPECT_EQ(Found(other, "kernel"), "code");
  EXPECT_EQ(Found(other, "another"), "(missed)");
  EXPECT_TRUE(other.Insert(KeyOf("kernel"), Bytes("newer")));
  EXPECT_EQ(Found(one, "kernel"), "newer");
  EXPECT_EQ(Files().size(), 1U);
}

TEST_F(CompileCacheTest, IsForItsUserAlone) {
  CompileCache cache((folder_ / "deep" / "er").string(), 1 << 20);
  ASSERT_TRUE(cache.Insert(KeyOf("kernel"), Bytes("code")));
  for (const auto& one : fs::recursive_directory_iterator(folder_)) {
    EXPECT_EQ(one.status().permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << one.path();
  }
}

// Whatever byte of a file is another, and wherever it ends: the entry is a miss, never other code.
TEST_F(CompileCacheTest, NothingDamagedIsFound) {
  CompileCache cache(folder_, 1 << 20);
  ASSERT_TRUE(cache.Insert(KeyOf("kernel"), Bytes("machine code")));
  fs::path file = Files().at(0);
  uint64_t size = fs::file_size(file);
  for (uint64_t place = 0; place < size; ++place) {
    ASSERT_TRUE(cache.Insert(KeyOf("kernel"), Bytes("machine code")));
    std::fstream changed(file, std::ios::in | std::ios::out | std::ios::binary);
    changed.seekg(static_cast<std::streamoff>(place));
    char byte = static_cast<char>(changed.get() ^ 0x10);
    changed.seekp(static_cast<std::streamoff>(place));
    changed.put(byte);
    changed.close();
    EXPECT_EQ(Found(cache, "kernel"), "(missed)") << "byte " << place;
    EXPECT_FALSE(fs::exists(file)) << "byte " << place;
  }
  for (uint64_t length : {uint64_t{0}, size - 1, size + 1}) {
    ASSERT_TRUE(cache.Insert(KeyOf("kernel"), Bytes("machine code")));
    fs::resize_file(file, length);
    EXPECT_EQ(Found(cache, "kernel"), "(missed)") << length;
  }
}

TEST_F(CompileCacheTest, WhatIsAtAnotherKeysPlaceIsAMiss) {
  CompileCache cache(folder_, 1 << 20);
  ASSERT_TRUE(cache.Insert(KeyOf("one"), Bytes("code of one")));
  fs::path one = Files().at(0);
  ASSERT_TRUE(cache.Insert(KeyOf("two"), Bytes("code of two")));
  auto files = Files();
  fs::path two = *std::ranges::find_if(files, [&](const auto& file) { return file != one; });
  fs::copy_file(one, two, fs::copy_options::overwrite_existing);
  EXPECT_EQ(Found(cache, "two"), "(missed)");
}

TEST_F(CompileCacheTest, StaysWithinItsLimitAndKeepsWhatIsUsed) {
  constexpr uint64_t kLimit = 40'000;
  CompileCache cache(folder_, kLimit);
  std::string code(1000, 'c');
  ASSERT_TRUE(cache.Insert(KeyOf("used"), Bytes("always used")));
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(cache.Insert(KeyOf(std::to_string(i)), Bytes(code)));
    EXPECT_LE(Stored(), kLimit);
    EXPECT_EQ(Found(cache, "used"), "always used") << i;
  }
  EXPECT_GT(Stored(), kLimit / 2);
  EXPECT_EQ(Found(cache, "199"), code);
  EXPECT_EQ(Found(cache, "0"), "(missed)");
  EXPECT_FALSE(cache.Insert(KeyOf("large"), Bytes(std::string(kLimit, 'l'))));
}

TEST_F(CompileCacheTest, ThreadsAndProcessesAtOnceFindWholeEntriesOnly) {
  CompileCache cache(folder_, 20'000);
  auto work = [&cache](int seed) {
    for (int i = 0; i < 200; ++i) {
      std::string name = std::to_string((i * 7 + seed) % 40);
      std::string code(500 + name.size() * 100, name[0]);
      cache.Insert(KeyOf(name), Bytes(code));
      std::string found = Found(cache, name);
      EXPECT_TRUE(found == code || found == "(missed)");
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  EXPECT_LE(Stored(), 20'000U);
}

TEST(CompileKey, FieldsDoNotRunIntoEachOther) {
  CompileKey one, other;
  one.Add("ab");
  one.Add("c");
  other.Add("a");
  other.Add("bc");
  EXPECT_NE(one.Finish(), other.Finish());
}

class CacheSettings : public testing::Test {
 protected:
  CacheSettings() { Set("HOME", "/home/somebody"); }
  ~CacheSettings() override {
    for (const char* name : {"CUDA_CACHE_DISABLE", "CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE"}) {
      unsetenv(name);
    }
  }
  static void Set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(CacheSettings, LiesWhereTheDriversLies) {
  auto cache = CompileCache::FromEnvironment();
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->folder(), "/home/somebody/.nv/ComputeCache/longwire");
  EXPECT_EQ(cache->limit(), CompileCache::kUsualLimit);
  Set("CUDA_CACHE_PATH", "/fast/disk");
  EXPECT_EQ(CompileCache::FromEnvironment()->folder(), "/fast/disk/longwire");
}

TEST_F(CacheSettings, CanBeSwitchedOffAndBounded) {
  Set("CUDA_CACHE_MAXSIZE", "1000000");
  EXPECT_EQ(CompileCache::FromEnvironment()->limit(), 1'000'000U);
  Set("CUDA_CACHE_MAXSIZE", "99999999999999");
  EXPECT_EQ(CompileCache::FromEnvironment()->limit(), CompileCache::kLargestLimit);
  Set("CUDA_CACHE_MAXSIZE", "large");
  EXPECT_EQ(CompileCache::FromEnvironment()->limit(), CompileCache::kUsualLimit);
  Set("CUDA_CACHE_MAXSIZE", "0");
  EXPECT_FALSE(CompileCache::FromEnvironment());
  unsetenv("CUDA_CACHE_MAXSIZE");
  Set("CUDA_CACHE_DISABLE", "0");
  EXPECT_TRUE(CompileCache::FromEnvironment());
  Set("CUDA_CACHE_DISABLE", "1");
  EXPECT_FALSE(CompileCache::FromEnvironment());
  unsetenv("CUDA_CACHE_DISABLE");
  unsetenv("HOME");
  EXPECT_FALSE(CompileCache::FromEnvironment());
}

}  // namespace
}  // namespace longwire::shim
