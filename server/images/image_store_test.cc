#include "server/images/image_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "server/images/sealed_memory.h"

namespace longwire::images {
namespace {

namespace fs = std::filesystem;
using Kept = ImageStore::Kept;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

wire::Digest DigestOf(const std::string& text) { return wire::Sha256Of(Bytes(text)); }

wire::Descriptor Sealed(const std::string& text) {
  wire::Descriptor memory = NewMemory();
  EXPECT_TRUE(WriteAll(memory.get(), Bytes(text)));
  EXPECT_TRUE(Seal(memory));
  return memory;
}

class ImageStoreTest : public testing::Test {
 protected:
  ImageStoreTest() {
    char folder[] = "/tmp/longwire-images-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~ImageStoreTest() override { fs::remove_all(folder_); }

  void Open(uint64_t bytes = 1 << 20, uint64_t tenant_bytes = UINT64_MAX,
            uint64_t tenant_images = UINT64_MAX) {
    store_.reset();
    std::string sentence;
    store_ =
        ImageStore::Open({folder_ + "/modules", bytes, tenant_bytes, tenant_images}, &sentence);
    ASSERT_NE(store_, nullptr) << sentence;
  }
  Kept Keep(const std::string& tenant, const std::string& text) {
    return store_->Keep(tenant, DigestOf(text), text.size(), Sealed(text));
  }
  // The bytes that the tenant gets, or "unknown".
  std::string Find(const std::string& tenant, const std::string& text) {
    wire::Descriptor memory = store_->Find(tenant, DigestOf(text), text.size());
    if (!memory.valid()) return "unknown";
    EXPECT_TRUE(IsSealed(memory, text.size()));
    std::string got(text.size(), '\0');
    EXPECT_TRUE(ReadAll(memory, std::as_writable_bytes(std::span(got))));
    return got;
  }
  std::string PathOf(const std::string& text) {
    return folder_ + "/modules/images/" + wire::Hexadecimal(DigestOf(text));
  }
  size_t Files(const std::string& part) {
    fs::recursive_directory_iterator files(folder_ + "/modules/" + part);
    size_t count = 0;
    for (const auto& file : files) count += file.is_regular_file() ? 1 : 0;
    return count;
  }

  std::string folder_;
  std::unique_ptr<ImageStore> store_;
};

TEST_F(ImageStoreTest, WhatWasUploadedIsKnown) {
  Open();
  EXPECT_EQ(Find("a", "kernels"), "unknown");
  EXPECT_EQ(Keep("a", "kernels"), Kept::kDone);
  EXPECT_EQ(Find("a", "kernels"), "kernels");
  EXPECT_TRUE(store_->Knows("a", DigestOf("kernels"), 7));
  EXPECT_FALSE(store_->Knows("a", DigestOf("kernels"), 8));
  Figures figures = store_->figures();
  EXPECT_EQ(figures.images, 1u);
  EXPECT_EQ(figures.bytes, 7u);
  EXPECT_EQ(figures.saved, 7u);
  EXPECT_EQ(figures.hits, 2u);
  EXPECT_EQ(figures.misses, 2u);
}

TEST_F(ImageStoreTest, OnlyWhoUploadedItKnowsIt) {
  Open();
  EXPECT_EQ(Keep("a", "weights"), Kept::kDone);
  EXPECT_EQ(Find("b", "weights"), "unknown");
  EXPECT_FALSE(store_->Knows("b", DigestOf("weights"), 7));
  // Nor by naming the digest of bytes that it does not have.
  EXPECT_EQ(store_->Keep("b", DigestOf("weights"), 7, Sealed("guessed")), Kept::kRefused);
  EXPECT_EQ(Find("b", "weights"), "unknown");
  EXPECT_EQ(Keep("b", "weights"), Kept::kDone);
  EXPECT_EQ(Find("b", "weights"), "weights");
  EXPECT_EQ(Files("images"), 1u) << "equal bytes lie on the disk once";
  EXPECT_EQ(store_->figures().bytes, 7u);
}

TEST_F(ImageStoreTest, OnlyWhatItIsSaidToBe) {
  Open();
  EXPECT_EQ(store_->Keep("a", DigestOf("good"), 4, Sealed("evil")), Kept::kRefused);
  EXPECT_EQ(Find("a", "good"), "unknown");
  EXPECT_EQ(Files("."), 1u) << "the lock alone is left";
}

TEST_F(ImageStoreTest, OnlySealedMemoryOfTheRightSizeIsRead) {
  Open();
  wire::Descriptor open_memory = NewMemory();
  ASSERT_TRUE(WriteAll(open_memory.get(), Bytes("late change")));
  EXPECT_EQ(store_->Keep("a", DigestOf("late change"), 11, open_memory), Kept::kRefused);
  EXPECT_EQ(store_->Keep("a", DigestOf("longer"), 60, Sealed("longer")), Kept::kRefused);
  wire::Descriptor endless(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(store_->Keep("a", DigestOf("zero"), 4, endless), Kept::kRefused);
  EXPECT_EQ(store_->Keep("../a", DigestOf("name"), 4, Sealed("name")), Kept::kRefused);
}

TEST_F(ImageStoreTest, WhatIsDamagedIsDroppedAndTakenInAgain) {
  Open();
  for (const char* damage : {"kernelz", "short", ""}) {
    EXPECT_EQ(Keep("a", "kernels"), Kept::kDone);
    std::ofstream(PathOf("kernels"), std::ios::trunc) << damage;
    EXPECT_EQ(Find("a", "kernels"), "unknown");
    EXPECT_FALSE(fs::exists(PathOf("kernels")));
    EXPECT_FALSE(store_->Knows("a", DigestOf("kernels"), 7));
  }
  EXPECT_EQ(store_->figures().damaged, 3u);
  EXPECT_EQ(Keep("a", "kernels"), Kept::kDone);
  EXPECT_EQ(Find("a", "kernels"), "kernels");
}

TEST_F(ImageStoreTest, TheLeastRecentlyUsedMakeRoom) {
  Open(30);
  for (const char* text : {"first00000", "second0000", "third00000"}) {
    EXPECT_EQ(Keep("a", text), Kept::kDone);
  }
  EXPECT_EQ(Find("a", "first00000"), "first00000");
  EXPECT_EQ(Keep("a", "fourth0000"), Kept::kDone);
  EXPECT_EQ(Find("a", "second0000"), "unknown");
  EXPECT_EQ(Find("a", "first00000"), "first00000");
  EXPECT_EQ(store_->figures().bytes, 30u);
  EXPECT_EQ(store_->figures().evicted, 1u);
  EXPECT_EQ(Keep("a", std::string(31, 'x')), Kept::kNoRoom);
  EXPECT_EQ(store_->figures().images, 3u) << "what can never fit drives nothing out";
  EXPECT_EQ(Files("tenants"), 3u);
}

TEST_F(ImageStoreTest, ATenantHasAsManyAsItMay) {
  Open(1 << 20, 1 << 20, 3);
  EXPECT_EQ(Keep("b", "of another"), Kept::kDone);
  EXPECT_EQ(Keep("b", "image 0"), Kept::kDone);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Keep("a", "image " + std::to_string(i)), Kept::kDone);
    EXPECT_EQ(Find("a", "image 0"), "image 0") << "it is used all the time";
  }
  EXPECT_EQ(Find("a", "image 49"), "image 49");
  EXPECT_EQ(Find("a", "image 47"), "unknown");
  EXPECT_EQ(Files("tenants"), 5u);
  EXPECT_EQ(Files("images"), 4u) << "one is of both";
  EXPECT_EQ(Find("b", "of another"), "of another");
  Open(1 << 20, 1 << 20, 1);
  EXPECT_EQ(Files("tenants"), 2u) << "a lower limit holds at once";
}

TEST_F(ImageStoreTest, ATenantHasAsManyBytesAsItMay) {
  Open(1 << 20, 25);
  for (int i = 10; i < 20; ++i) EXPECT_EQ(Keep("a", "image " + std::to_string(i)), Kept::kDone);
  EXPECT_EQ(store_->figures().bytes, 24u);
  EXPECT_EQ(Find("a", "image 17"), "image 17");
  EXPECT_EQ(Find("a", "image 16"), "unknown");
}

TEST_F(ImageStoreTest, WhoHasMostMakesRoom) {
  Open(100);
  EXPECT_EQ(Keep("few", "old but ours"), Kept::kDone);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Keep("many", "number " + std::to_string(1000 + i)), Kept::kDone);
  }
  EXPECT_EQ(Find("few", "old but ours"), "old but ours");
  EXPECT_EQ(store_->figures().images, 9u);
}

TEST_F(ImageStoreTest, ItIsThereAfterARestart) {
  Open();
  EXPECT_EQ(Keep("a", "kernels"), Kept::kDone);
  EXPECT_EQ(Keep("b", "others"), Kept::kDone);
  std::ofstream(folder_ + "/modules/new/7") << "half of an image";
  fs::remove(folder_ + "/modules/tenants/=b/" + wire::Hexadecimal(DigestOf("others")));
  Open();
  EXPECT_EQ(Find("a", "kernels"), "kernels");
  EXPECT_EQ(Find("b", "kernels"), "unknown");
  EXPECT_EQ(store_->figures().images, 1u) << "what nobody may ask for is gone";
  EXPECT_EQ(Files("new"), 0u);
  EXPECT_EQ(Keep("a", "more"), Kept::kDone);
  Open(8);
  EXPECT_EQ(store_->figures().bytes, 4u) << "a lower limit holds at once";
  EXPECT_EQ(Find("a", "more"), "more");
}

TEST_F(ImageStoreTest, OneProcessUsesAFolder) {
  Open();
  std::string sentence;
  EXPECT_EQ(ImageStore::Open({folder_ + "/modules", 1 << 20}, &sentence), nullptr);
  EXPECT_NE(sentence.find("another longwired"), std::string::npos) << sentence;
  EXPECT_EQ(ImageStore::Open({"/proc/no/such", 1 << 20}, &sentence), nullptr);
  EXPECT_NE(sentence.find("/proc/no/such"), std::string::npos) << sentence;
}

TEST_F(ImageStoreTest, AFolderThatGoesAwayLosesNothing) {
  Open();
  EXPECT_EQ(Keep("a", "kernels"), Kept::kDone);
  fs::remove_all(folder_ + "/modules");
  EXPECT_EQ(Find("a", "kernels"), "unknown");
  EXPECT_EQ(Keep("a", "kernels"), Kept::kDone);
  EXPECT_EQ(Find("a", "kernels"), "kernels");
  EXPECT_EQ(store_->figures().bytes, 7u);
  std::string sentence;
  EXPECT_EQ(ImageStore::Open({folder_ + "/modules", 1 << 20}, &sentence), nullptr);
  // Where it cannot be made again, the reason is said.
  fs::remove_all(folder_ + "/modules");
  std::ofstream(folder_ + "/modules") << "a file";
  EXPECT_EQ(store_->Keep("a", DigestOf("more"), 4, Sealed("more"), &sentence), Kept::kNoRoom);
  EXPECT_NE(sentence.find("/modules: "), std::string::npos) << sentence;
}

// Two tenants, more images than fit, everybody at once: nobody ever gets wrong bytes.
TEST_F(ImageStoreTest, ManyAtOnce) {
  Open(4000);
  std::vector<std::thread> workers;
  for (int number = 0; number < 4; ++number) {
    workers.emplace_back([this, number] {
      std::string tenant = number % 2 == 0 ? "even" : "odd";
      for (int i = 0; i < 200; ++i) {
        std::string text(500, static_cast<char>('a' + (i + number) % 12));
        std::string got = Find(tenant, text);
        EXPECT_TRUE(got == text || got == "unknown");
        if (got != "unknown") continue;
        EXPECT_NE(Keep(tenant, text), Kept::kRefused);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  Figures figures = store_->figures();
  EXPECT_LE(figures.bytes, 4000u);
  EXPECT_EQ(figures.bytes, figures.images * 500);
  EXPECT_EQ(Files("images"), figures.images);
  EXPECT_EQ(Files("new"), 0u);
}

}  // namespace
}  // namespace longwire::images
