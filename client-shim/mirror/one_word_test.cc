#include "client-shim/mirror/one_word.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "client-shim/mirror/mirror_table.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

// Memory of several times what is copied at once, in two mirrors that begin anywhere.
class OneWordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const uint64_t bytes : {3 * wire::kLookBytes + 1000, wire::kLookBytes / 2}) {
      auto &memory = memory_.emplace_back(bytes + 24), &shadow = shadows_.emplace_back(bytes);
      auto& mirror = mirrors_.emplace_back(std::make_unique<Mirror>());
      mirror->range.address = reinterpret_cast<uint64_t>(memory.data()) + 24;
      mirror->range.bytes = bytes;
      mirror->shadow = shadow.data();
      parts_.push_back({mirror.get(), 0, bytes});
    }
  }
  void Write(size_t mirror, uint64_t offset, uint32_t value) {
    std::memcpy(memory_[mirror].data() + 24 + offset, &value, sizeof(value));
  }
  OneWord::Found Find() { return search_.Find(parts_, &mirror_, &word_); }

  std::vector<std::vector<std::byte>> memory_, shadows_;
  std::vector<std::unique_ptr<Mirror>> mirrors_;
  std::vector<MirrorPart> parts_;
  OneWord search_;
  Mirror* mirror_ = nullptr;
  wire::ChangedWord word_;
};

TEST_F(OneWordTest, IsFoundWhereverItLies) {
  EXPECT_EQ(Find(), OneWord::Found::kNone);
  for (const uint64_t offset :
       {uint64_t{0}, wire::kLookBytes - 64, wire::kLookBytes - 24, wire::kLookBytes,
        2 * wire::kLookBytes + 8, 3 * wire::kLookBytes + 992}) {
    Write(0, offset, 0x01010101);
    ASSERT_EQ(Find(), OneWord::Found::kWord) << offset;
    EXPECT_EQ(mirror_, mirrors_[0].get());
    EXPECT_EQ(word_.offset, offset);
    EXPECT_EQ(word_.bytes, 4U);
    Write(0, offset, 0);
  }
  Write(1, 4096, 0x01010101);
  ASSERT_EQ(Find(), OneWord::Found::kWord);
  EXPECT_EQ(mirror_, mirrors_[1].get());
  EXPECT_EQ(word_.offset, 4096U);
}

TEST_F(OneWordTest, TwoAreMoreHoweverFarApart) {
  Write(0, 64, 1);
  Write(0, 2 * wire::kLookBytes, 1);
  EXPECT_EQ(Find(), OneWord::Found::kMore);
  Write(0, 64, 0);
  Write(1, 0, 1);
  EXPECT_EQ(Find(), OneWord::Found::kMore);
}

}  // namespace
}  // namespace longwire::shim
