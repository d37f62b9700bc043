#include "policy/maps.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "policy/include/longwire/policy.h"
#include "policy/store.h"

namespace longwire::policy {
namespace {

using Entries = std::vector<std::pair<uint64_t, uint64_t>>;

// Maps with memory of their own.
class OwnMaps : public Maps {
 public:
  explicit OwnMaps(const std::vector<MapShape>& shapes) : OwnMaps(shapes, NewStore(shapes)) {}
  OwnMaps(const std::vector<MapShape>& shapes, std::shared_ptr<Store> store)
      : Maps(shapes, store->words()), store_(std::move(store)) {}

 private:
  static std::shared_ptr<Store> NewStore(const std::vector<MapShape>& shapes) {
    std::string sentence;
    auto store = Store::Create(WordsOf(shapes), &sentence);
    EXPECT_NE(nullptr, store) << sentence;
    return store;
  }
  std::shared_ptr<Store> store_;
};

TEST(MapsTest, ArrayHasItsKeysAndNoOther) {
  OwnMaps maps({{"counts", LW_ARRAY, 4}});
  Map& map = *maps.At(0);
  EXPECT_EQ(0u, map.Get(3));
  EXPECT_TRUE(map.Set(3, 7));
  EXPECT_EQ(9u, map.Add(3, 2));
  EXPECT_FALSE(map.Set(4, 1));
  EXPECT_EQ(std::nullopt, map.Get(4));
  EXPECT_EQ(std::nullopt, map.Add(~uint64_t{0}, 1));
  EXPECT_EQ((Entries{{3, 9}}), map.Entries());
}

TEST(MapsTest, HashTakesAsManyKeysAsItWasMadeFor) {
  OwnMaps maps({{"ranks", LW_HASH, 1000}});
  Map& map = *maps.Find("ranks");
  for (uint64_t key = 0; key < 1000; ++key) ASSERT_TRUE(map.Set(key << 40, key + 1)) << key;
  EXPECT_FALSE(map.Set(1, 1));
  EXPECT_EQ(std::nullopt, map.Add(2, 1));
  EXPECT_TRUE(map.Set(uint64_t{5} << 40, 77)) << "a key that is there has room";
  EXPECT_EQ(77u, map.Get(uint64_t{5} << 40));
  EXPECT_EQ(std::nullopt, map.Get(3));
  EXPECT_EQ(1000u, map.Entries().size());
}

TEST(MapsTest, UnknownOnesAreNull) {
  OwnMaps maps({{"a", LW_ARRAY, 1}});
  EXPECT_EQ(nullptr, maps.At(1));
  EXPECT_EQ(nullptr, maps.Find("b"));
}

// A hook's time is bounded by the number of its calls, whatever the keys are.
TEST(MapsTest, KeysThatAllCollideFindNoRoomSoon) {
  OwnMaps maps({{"map", LW_HASH, 1024}});
  Map& map = *maps.At(0);
  const auto home = [](uint64_t key) { return ((key * 0x9e3779b97f4a7c15) >> 32) & 2047; };
  uint64_t kept = 0;
  for (uint64_t key = 0; key < 400'000; ++key) {
    if (home(key) != 7) continue;
    kept += map.Set(key, key + 1) ? 1 : 0;
  }
  EXPECT_EQ(128u, kept);
  EXPECT_EQ(128u, map.Entries().size());
  uint64_t other = 0;
  while (home(other) != 1000) ++other;
  EXPECT_TRUE(map.Set(other, 1));
}

// All numbers are keys, also the one whose slot would look empty.
TEST(MapsTest, EveryNumberIsAKey) {
  OwnMaps maps({{"map", LW_HASH, 4}});
  Map& map = *maps.At(0);
  constexpr uint64_t kChanged = 0x6c6f6e6777697265;  // of maps.cc
  for (const uint64_t key : {kChanged, kChanged ^ 1, uint64_t{0}, ~uint64_t{0}}) {
    EXPECT_EQ(std::nullopt, map.Get(key));
    EXPECT_TRUE(map.Set(key, key));
  }
  EXPECT_FALSE(map.Set(5, 1)) << "it is full";
  EXPECT_EQ(3u, map.Entries().size()) << "one value is zero";
  EXPECT_EQ(kChanged, map.Get(kChanged));
  EXPECT_EQ(kChanged ^ 1, map.Get(kChanged ^ 1));
}

// Runs the function in four threads, each with its number, that begin at the same moment, on a new
// map each time.
template <class Function>
void AtOnce(int rounds, uint32_t entries, const Function& function,
            const std::function<void(Map&)>& check) {
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<OwnMaps>> maps;
  for (int round = 0; round < rounds; ++round) {
    maps.push_back(std::make_unique<OwnMaps>(std::vector<MapShape>{{"map", LW_HASH, entries}}));
  }
  std::vector<std::atomic<int>> begun(static_cast<size_t>(rounds));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < rounds; ++round) {
        begun[round].fetch_add(1);
        while (begun[round].load() < kThreads) std::this_thread::yield();
        function(*maps[round]->At(0), static_cast<uint64_t>(thread));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : maps) check(*each->At(0));
}

TEST(MapsTest, TheLastKeyIsThereForAllWhoTakeItAtOnce) {
  AtOnce(
      2000, 1, [](Map& map, uint64_t) { EXPECT_TRUE(map.Add(7, 1)); },
      [](Map& map) { EXPECT_EQ(4u, map.Get(7)); });
}

// Keys that look for the same slot.
TEST(MapsTest, AnotherKeyTakesNoValueOfIt) {
  const auto home = [](uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> 32 & 15; };
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; keys.size() < 4; ++key) {
    if (home(key) == 3) keys.push_back(key);
  }
  AtOnce(
      2000, 8,
      [&](Map& map, uint64_t thread) {
        EXPECT_EQ(thread + 1, map.Add(keys[thread], thread + 1));
        EXPECT_EQ(thread + 1, map.Get(keys[thread]));
      },
      [&](Map& map) {
        for (uint64_t thread = 0; thread < 4; ++thread) {
          EXPECT_EQ(thread + 1, map.Get(keys[thread]));
        }
      });
}

// No key is there twice and none is lost, whatever threads take them at once.
TEST(MapsTest, ThreadsThatTakeKeysAtOnceAgree) {
  OwnMaps maps({{"map", LW_HASH, 500}});
  Map& map = *maps.At(0);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (uint64_t key = 0; key < 1000; ++key) map.Add(key % 500, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto entries = map.Entries();
  ASSERT_EQ(500u, entries.size());
  for (const auto& [key, value] : entries) EXPECT_EQ(8u, value) << key;
}

TEST(StoreTest, AnotherMappingHasTheSameValuesAndTheSameEnd) {
  const std::vector<MapShape> shapes{{"map", LW_HASH, 8}};
  std::string sentence;
  auto first = Store::Create(Maps::WordsOf(shapes), &sentence);
  ASSERT_NE(nullptr, first) << sentence;
  auto second =
      Store::Map(wire::Descriptor(dup(first->descriptor())), Maps::WordsOf(shapes), &sentence);
  ASSERT_NE(nullptr, second) << sentence;
  OwnMaps one(shapes, first), other(shapes, second);
  one.At(0)->Set(3, 4);
  EXPECT_EQ(4u, other.At(0)->Get(3));
  EXPECT_EQ("", first->why_ended());
  EXPECT_TRUE(second->End("it was slow"));
  EXPECT_FALSE(first->End("again"));
  EXPECT_EQ("it was slow", first->why_ended());
  EXPECT_NE(0, ftruncate(first->descriptor(), 0)) << "a reader would be killed";
  EXPECT_EQ(nullptr, Store::Map(wire::Descriptor(dup(first->descriptor())), 5, &sentence));
  EXPECT_NE(std::string::npos, sentence.find("is not that of its maps")) << sentence;
}

}  // namespace
}  // namespace longwire::policy
