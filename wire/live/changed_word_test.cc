#include "wire/live/changed_word.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace longwire::wire {
namespace {

constexpr uint64_t kAddress = 0x1000;

// Two ranges, as they are compared.
struct Memory {
  std::vector<std::byte> now[2], shadow[2];
  uint64_t address = kAddress;
  Memory() {
    for (int i : {0, 1}) now[i].resize(3 * 4096 + 20), shadow[i].resize(3 * 4096 + 20);
  }
  std::vector<ComparedRange> ranges() const {
    return {{now[0], shadow[0].data(), address}, {now[1], shadow[1].data(), 2 * kAddress}};
  }
  void Put(int range, size_t at, int value) { now[range][at] = static_cast<std::byte>(value); }
};

Difference Find(const Memory& memory, ChangedWord* word) {
  return FindDifference(memory.ranges(), word);
}

TEST(ChangedWord, TheSmallestAlignedWordHoldsAllChangedBytes) {
  struct Case {
    std::vector<size_t> bytes;
    uint64_t offset;
    uint32_t size;
  };
  const Case cases[] = {{{0}, 0, 1},       {{7}, 7, 1},       {{8, 9}, 8, 2},  {{9, 10}, 8, 4},
                        {{8, 11}, 8, 4},   {{11, 12}, 8, 8},  {{8, 15}, 8, 8}, {{4096}, 4096, 1},
                        {{14, 15}, 14, 2}, {{8, 9, 10}, 8, 4}};
  for (const Case& one : cases) {
    for (int range : {0, 1}) {
      Memory memory;
      for (size_t at : one.bytes) memory.Put(range, at, 5);
      ChangedWord word;
      ASSERT_EQ(Find(memory, &word), Difference::kWord) << one.bytes[0];
      EXPECT_EQ(word.range, static_cast<size_t>(range));
      EXPECT_EQ(word.offset, one.offset);
      EXPECT_EQ(word.bytes, one.size);
      for (size_t i = 0; i < word.bytes; ++i) {
        EXPECT_EQ(word.was[i], std::byte{0});
        EXPECT_EQ(word.is[i], memory.now[range][word.offset + i]);
      }
    }
  }
}

TEST(ChangedWord, TwoWordsAreMore) {
  ChangedWord word;
  Memory memory;
  EXPECT_EQ(Find(memory, &word), Difference::kNone);
  memory.Put(0, 15, 1);
  memory.Put(0, 16, 1);
  EXPECT_EQ(Find(memory, &word), Difference::kMore);
  Memory pages;
  pages.Put(0, 0, 1);
  pages.Put(0, 2 * 4096, 1);
  EXPECT_EQ(Find(pages, &word), Difference::kMore);
  Memory both;
  both.Put(0, 0, 1);
  both.Put(1, 0, 1);
  EXPECT_EQ(Find(both, &word), Difference::kMore);
}

TEST(ChangedWord, TheAddressDecidesTheAlignment) {
  Memory memory;
  memory.address = kAddress + 4;
  memory.Put(0, 0, 1);
  memory.Put(0, 3, 1);
  ChangedWord word;
  ASSERT_EQ(Find(memory, &word), Difference::kWord);
  EXPECT_EQ(word.offset, 0u);
  EXPECT_EQ(word.bytes, 4u);
  memory.Put(0, 4, 1);  // at 0x1008: another word
  EXPECT_EQ(Find(memory, &word), Difference::kMore);
}

TEST(ChangedWord, AWordThatLeavesTheRangeIsNone) {
  Memory memory;
  memory.address = kAddress + 1;
  memory.Put(0, 0, 1);
  memory.Put(0, 1, 1);  // at 1 and 2: in the word of 4 bytes at 0, which begins before the range
  ChangedWord word;
  EXPECT_EQ(Find(memory, &word), Difference::kMore);
}

TEST(ChangedWord, ALaterCopyConfirmsWhatHasNothingNewBeside) {
  Memory memory;
  memory.Put(0, 16, 1);
  ChangedWord word;
  ASSERT_EQ(Find(memory, &word), Difference::kWord);
  EXPECT_TRUE(Confirms(memory.ranges(), word));
  memory.Put(0, 16, 2);  // the word itself may go on, or back
  EXPECT_TRUE(Confirms(memory.ranges(), word));
  memory.Put(0, 19, 2);
  EXPECT_TRUE(Confirms(memory.ranges(), word));
  memory.Put(0, 16, 0);
  memory.Put(0, 19, 0);
  EXPECT_TRUE(Confirms(memory.ranges(), word));
  memory.Put(0, 8, 1);  // what was written before the word, perhaps
  EXPECT_FALSE(Confirms(memory.ranges(), word));
  memory.Put(0, 16, 1);
  EXPECT_FALSE(Confirms(memory.ranges(), word));
  Memory other;
  other.Put(1, 16, 1);
  EXPECT_FALSE(Confirms(other.ranges(), word));
}

// A writer counts in one word after the other; each state that is taken has them in their order.
TEST(ChangedWord, StatesThatAreTakenWhileOthersWriteAreInOrder) {
  std::vector<uint64_t> live(512), shadow(512), first(512), second(512);
  std::atomic<bool> stop{false};
  auto at = [&](size_t i) { return std::atomic_ref<uint64_t>(live[i]); };
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; ++round) {
      at(3).store(round);  // the payload is copied before the flag
      at(500).store(round);
    }
  });
  auto copy = [&](std::vector<uint64_t>& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = at(i).load();
  };
  auto compared = [&](const std::vector<uint64_t>& of) {
    return ComparedRange{std::as_bytes(std::span(of)),
                         reinterpret_cast<const std::byte*>(shadow.data()), kAddress};
  };
  int words = 0, wrong = 0;
  for (int look = 0; look < 20000; ++look) {
    copy(first);
    copy(second);
    ChangedWord word;
    const ComparedRange early[] = {compared(first)}, late[] = {compared(second)};
    const Difference found = FindDifference(early, &word);
    if (found == Difference::kWord && Confirms(late, word)) {
      ++words;
      std::memcpy(reinterpret_cast<std::byte*>(shadow.data()) + word.offset, word.is.data(),
                  word.bytes);
    } else if (found == Difference::kMore && first == second) {
      shadow = first;
    }
    wrong += shadow[3] < shadow[500];
  }
  stop = true;
  writer.join();
  EXPECT_EQ(wrong, 0) << words << " words";
}

TEST(StoreWord, ChangesOnlyWhatDiffers) {
  for (uint32_t bytes : {1u, 2u, 4u, 8u}) {
    alignas(8) std::array<std::byte, 8> place{}, was{}, is{};
    is[bytes - 1] = std::byte{7};
    if (bytes > 1) place[0] = std::byte{3};  // this side's own
    EXPECT_TRUE(StoreWord(place.data(), bytes, was.data(), is.data()));
    EXPECT_EQ(place[bytes - 1], std::byte{7});
    EXPECT_EQ(place[0], bytes > 1 ? std::byte{3} : std::byte{7});
    EXPECT_TRUE(StoreWord(place.data(), bytes, was.data(), is.data())) << "the same value";
    place[bytes - 1] = std::byte{9};
    EXPECT_FALSE(StoreWord(place.data(), bytes, was.data(), is.data()));
    EXPECT_EQ(place[bytes - 1], std::byte{9});
  }
}

}  // namespace
}  // namespace longwire::wire
