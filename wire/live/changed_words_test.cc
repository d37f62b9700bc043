#include "wire/live/changed_words.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "wire/page_delta.h"

namespace longwire::wire {
namespace {

// What `now` has at an address, and what the other end has of it.
struct Memory {
  explicit Memory(size_t bytes, size_t misaligned = 0)
      : room(bytes + 128), shadow(bytes), copy(bytes), address(0x1000 + misaligned) {
    const auto first = reinterpret_cast<uint64_t>(room.data());
    now = std::span(room).subspan((64 - first % 64) + misaligned, bytes);
  }
  // The delta's words, after they were applied to the copy.
  std::vector<DeltaRun> Send() {
    delta.clear();
    EXPECT_EQ(AppendWords(now, shadow.data(), 0, address, SIZE_MAX, &delta), now.size());
    std::vector<DeltaRun> runs;
    EXPECT_EQ(ReadDelta(delta, now.size(), &runs), WireResult::kOk);
    for (const DeltaRun& run : runs) {
      EXPECT_EQ(run.form, PageForm::kWord);
      EXPECT_EQ((address + run.offset) % run.bytes.size(), 0u);
      EXPECT_EQ(std::memcmp(copy.data() + run.offset, run.was.data(), run.was.size()), 0);
      std::memcpy(copy.data() + run.offset, run.bytes.data(), run.bytes.size());
    }
    EXPECT_EQ(std::memcmp(copy.data(), now.data(), now.size()), 0);
    EXPECT_EQ(std::memcmp(shadow.data(), now.data(), now.size()), 0);
    return runs;
  }
  std::vector<std::byte> room, shadow, copy, delta;
  uint64_t address;
  std::span<std::byte> now;
};

TEST(ChangedWords, EachWordThatDiffersIsSentOnce) {
  Memory memory(3 * 4096);
  EXPECT_TRUE(memory.Send().empty());
  for (size_t at : {0u, 7u, 8u, 4095u, 4096u, 12287u}) memory.now[at] = std::byte{1};
  const auto runs = memory.Send();
  ASSERT_EQ(runs.size(), 5u);
  const uint64_t offsets[] = {0, 8, 4088, 4096, 12280};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(runs[i].offset, offsets[i]);
    EXPECT_EQ(runs[i].bytes.size(), 8u);
  }
  EXPECT_TRUE(memory.Send().empty());
}

TEST(ChangedWords, EveryEndAndEveryPlaceIsTaken) {
  for (size_t misaligned = 0; misaligned < 16; ++misaligned) {
    for (size_t bytes : {1u, 3u, 7u, 8u, 9u, 31u, 4096u, 4099u, 8191u}) {
      Memory memory(bytes, misaligned);
      for (size_t at = 0; at < bytes; at += bytes < 64 ? 1 : 97) {
        memory.now[at] = std::byte{5};
        const auto runs = memory.Send();
        ASSERT_EQ(runs.size(), 1u) << bytes << " at " << at;
      }
      for (std::byte& one : memory.now) one = std::byte{9};
      memory.Send();
      EXPECT_LE(memory.delta.size(), kMaxDeltaOfPage * (bytes / 4096 + 2));
    }
  }
}

TEST(ChangedWords, APageOfWordsFitsItsLimit) {
  Memory memory(4096 + 14, 1);
  for (std::byte& one : memory.now) one = std::byte{9};
  memory.delta.clear();
  // One page, and the first bytes of another.
  AppendWords(memory.now.first(4095), memory.shadow.data(), 0, memory.address, SIZE_MAX,
              &memory.delta);
  EXPECT_LE(memory.delta.size(), kMaxDeltaOfPage);
}

TEST(ChangedWords, ItStopsAtTheLimitAndGoesOnBehindIt) {
  Memory memory(8 * 4096);
  for (std::byte& one : memory.now) one = std::byte{1};
  std::vector<std::byte> delta;
  size_t at = 0, deltas = 0;
  for (; at < memory.now.size(); ++deltas) {
    delta.clear();
    at += AppendWords(memory.now.subspan(at), memory.shadow.data() + at, at, memory.address + at,
                      2 * 4096, &delta);
    EXPECT_LE(delta.size(), 2 * 4096 + kMaxDeltaOfPage);
  }
  EXPECT_EQ(at, memory.now.size());
  EXPECT_GT(deltas, 3u);
}

TEST(ChangedWords, OneHalfIsStoredWhereTheOtherStays) {
  const auto bytes = [](std::initializer_list<int> list) {
    std::vector<std::byte> all;
    for (int one : list) all.push_back(static_cast<std::byte>(one));
    return all;
  };
  const auto was = bytes({0, 0, 0, 0, 0, 0, 0, 0});
  struct Case {
    std::vector<std::byte> is;
    size_t begin, bytes;
  };
  const Case cases[] = {{bytes({0, 0, 0, 1, 0, 0, 0, 0}), 0, 4},
                        {bytes({0, 0, 0, 0, 0, 0, 0, 1}), 4, 4},
                        {bytes({1, 0, 0, 0, 0, 0, 0, 1}), 0, 8}};
  for (const Case& one : cases) {
    const StoredPart part = PartToStore(was, one.is);
    EXPECT_EQ(part.begin, one.begin);
    EXPECT_EQ(part.bytes, one.bytes);
  }
  EXPECT_EQ(PartToStore(std::span(was).first(2), std::span(was).first(2)).bytes, 2u);
}

// A writer stores words whose halves belong together: none is taken in part.
TEST(ChangedWords, NoWordIsTakenInPart) {
  Memory memory(4 * 4096);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    auto* words = reinterpret_cast<uint64_t*>(memory.now.data());
    for (uint32_t round = 1; !stop; ++round) {
      for (size_t i = 0; i < memory.now.size() / 8; ++i) {
        const uint64_t half = round + i;
        __atomic_store_n(words + i, half << 32 | (half * 2654435761u & 0xffffffff),
                         __ATOMIC_RELAXED);
      }
    }
  });
  size_t words = 0, torn = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (words < 500000 && std::chrono::steady_clock::now() < end) {
    memory.delta.clear();
    AppendWords(memory.now, memory.shadow.data(), 0, memory.address, SIZE_MAX, &memory.delta);
    std::vector<DeltaRun> runs;
    ASSERT_EQ(ReadDelta(memory.delta, memory.now.size(), &runs), WireResult::kOk);
    for (const DeltaRun& run : runs) {
      uint64_t word = 0;
      std::memcpy(&word, run.bytes.data(), 8);
      torn += (word & 0xffffffff) != ((word >> 32) * 2654435761u & 0xffffffff);
      ++words;
    }
  }
  stop = true;
  writer.join();
  EXPECT_EQ(torn, 0u) << words;
  EXPECT_GE(words, 500000u);
}

TEST(ChangedWords, AMalformedPageOfWordsIsRefused) {
  Memory memory(4096);
  for (size_t at : {0u, 800u}) memory.now[at] = std::byte{1};
  const auto good = [&](std::span<const std::byte> delta, uint64_t bytes) {
    std::vector<DeltaRun> runs;
    return ReadDelta(delta, bytes, &runs) == WireResult::kOk;
  };
  AppendWords(memory.now, memory.shadow.data(), 0, memory.address, SIZE_MAX, &memory.delta);
  EXPECT_TRUE(good(memory.delta, 4096));
  EXPECT_FALSE(good(memory.delta, 4088)) << "behind the range";
  for (size_t bytes = 1; bytes < memory.delta.size(); ++bytes) {
    EXPECT_FALSE(good(std::span(memory.delta).first(bytes), 4096)) << bytes;
  }
  std::vector<std::byte> odd = memory.delta;
  odd[8] ^= std::byte{4};  // the page's bytes: no whole words
  EXPECT_FALSE(good(odd, 8192));
}

}  // namespace
}  // namespace longwire::wire
