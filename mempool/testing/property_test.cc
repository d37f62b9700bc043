// Millions of random steps, each of them watched.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "mempool/testing/watched_pool.h"

namespace longwire::mempool::testing {
namespace {

// Sizes as programs have them: most are small, most bytes are in large ones.
uint64_t AnySize(std::mt19937_64& random) {
  switch (random() % 10) {
    case 0:
      return 64 * kMiB + random() % (600 * kMiB);
    case 1:
      return (random() % 40 + 1) * 32 * kMiB;
    case 2:
    case 3:
      return random() % (64 * kMiB) + 1;
    case 4:
      return 20 * kMiB;
    default:
      return random() % kSmallBytes + 1;
  }
}

uint64_t AnyOf(const std::map<uint64_t, uint64_t>& live, std::mt19937_64& random) {
  // By address: large ones come more often, but every one comes.
  uint64_t span = live.rbegin()->first - live.begin()->first + 1;
  auto found = live.lower_bound(live.begin()->first + random() % span);
  return found == live.end() ? live.rbegin()->first : found->first;
}

// Whatever the pool agrees to; many pairs are none.
void MoveSome(WatchedPool& watched, std::mt19937_64& random) {
  std::vector<uint64_t> blocks;
  for (auto [address, bytes] : watched.live()) {
    if (bytes >= kBlockBytes || random() % 50 == 0) blocks.push_back(address);
  }
  if (blocks.empty()) return;
  uint64_t from = blocks[random() % blocks.size()], to = blocks[random() % blocks.size()];
  bool grows = random() % 4 != 0;
  if (grows && watched.Allocate(watched.live().at(from) / 4 * 5, &to) != kDone) return;
  watched.Move(from, to);
}

void Step(WatchedPool& watched, std::mt19937_64& random) {
  uint64_t address = 0;
  switch (random() % 16) {
    case 0:
      watched.Work(random() % 3);
      break;
    case 1:
      watched.Progress(random() % 3, random() % 4);
      break;
    case 2:
      watched.device.Finish(random() % 3);
      break;
    case 3:
      if (random() % 500 == 0) watched.pool.GiveBack(random() % (2 * kGiB));
      break;
    case 4: {
      std::vector<Chunk> chunks;
      if (random() % 100 == 0 && watched.pool.LeaseOutside(70 * kMiB, &chunks) == kDone) {
        watched.device.Return(chunks);
      }
      break;
    }
    case 5:
      if (random() % 3 == 0) MoveSome(watched, random);
      break;
    default:
      bool allocates = watched.live().size() < 40 + random() % 400;
      if (watched.live().empty() || (allocates && random() % 20 < 11)) {
        FakeStream* stream = random() % 2 == 0 ? &watched.streams[random() % 3] : nullptr;
        watched.Allocate(AnySize(random), &address, stream);
      } else {
        watched.Free(AnyOf(watched.live(), random), static_cast<unsigned>(random() % 8));
      }
  }
}

class Property : public ::testing::TestWithParam<unsigned> {};

TEST_P(Property, NoByteIsLostOrGivenTwice) {
  constexpr int kSteps = 250'000;
  std::mt19937_64 random(GetParam());
  // Odd ones are short of memory most of the time.
  WatchedPool watched((GetParam() % 2 == 0 ? 64 : 6) * kGiB);
  if (GetParam() % 4 >= 2) watched.device.SetLargest(512 * kMiB);
  watched.device.SetPuttingBehind(GetParam() % 3 != 0);
  for (int step = 0; step < kSteps; ++step) {
    Step(watched, random);
    ASSERT_EQ("", watched.fault()) << "step " << step;
    ASSERT_EQ(watched.device.leased(), watched.pool.leased()) << "step " << step;
  }
  EXPECT_GT(watched.device.remaps, 100u);
  while (!watched.live().empty()) watched.Free(AnyOf(watched.live(), random), 7);
  watched.FinishAll();
  EXPECT_EQ(0u, watched.pool.resting());
  EXPECT_EQ(0, watched.device.marks());
  watched.pool.GiveBack(UINT64_MAX);
  watched.device.Finish();
  // One chunk of the arena stays.
  EXPECT_LE(watched.device.leased(), 64 * kMiB);
  EXPECT_EQ(watched.device.leased(), watched.pool.idle());
  EXPECT_EQ(watched.device.leased(), watched.device.mapped());
  EXPECT_EQ("", watched.fault());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Property, ::testing::Range(1u, 9u));

// However a set of allocations is freed, the same is left.
TEST(Order, OfFreesMakesNoDifference) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    WatchedPool watched(16 * kGiB);
    std::vector<uint64_t> taken(60);
    for (uint64_t& each : taken) ASSERT_EQ(kDone, watched.Allocate(AnySize(random), &each));
    uint64_t leased = watched.device.leased();
    std::shuffle(taken.begin(), taken.end(), random);
    for (uint64_t each : taken) {
      watched.Work(random() % 3);
      watched.Free(each, static_cast<unsigned>(random() % 8));
    }
    watched.FinishAll();
    EXPECT_EQ(leased, watched.device.leased());
    uint64_t all = 0;
    ASSERT_EQ(kDone, watched.Allocate(leased - 64 * kMiB, &all));
    EXPECT_EQ(leased, watched.device.leased());
    EXPECT_EQ("", watched.fault());
  }
}

}  // namespace
}  // namespace longwire::mempool::testing
