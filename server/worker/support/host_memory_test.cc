// What a session holds of the host's memory, and what it is refused.
#include "server/worker/support/host_memory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "server/gates/host_memory_table.h"
#include "server/worker/testing/test_session.h"
#include "wire/limits.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class HostMemoryTest : public ::testing::Test {
 protected:
  void Join(HostMemory& memory, uint32_t slot, uint64_t session = UINT64_MAX) {
    gates::HostMemoryTerms terms;
    terms.slot = slot;
    terms.session_limit = session;
    terms.modules = 3;
    terms.tenant = "t";
    page->slots() = 2;
    memory.Join(terms, page);
  }

  std::vector<std::string> said;
  HostMemory memory{[this](const std::string& sentence) { said.push_back(sentence); }};
  HostMemory other{[](const std::string&) {}};
  std::shared_ptr<gates::HostMemoryPage> page = gates::HostMemoryPage::Create();
};

TEST_F(HostMemoryTest, TheSessionsLimitHolds) {
  Join(memory, 0, 10 * kMiB);
  EXPECT_TRUE(memory.Take(HostUse::kPinned, 6 * kMiB));
  EXPECT_FALSE(memory.Take(HostUse::kModules, 5 * kMiB));
  EXPECT_TRUE(memory.Take(HostUse::kModules, 4 * kMiB));
  EXPECT_EQ(memory.used(), 10 * kMiB);
  EXPECT_FALSE(memory.Take(HostUse::kModules, 1));
  ASSERT_EQ(said.size(), 1u) << "once for each use";
  EXPECT_NE(said[0].find("session_host_memory of the tenant 't'"), std::string::npos) << said[0];
  memory.Give(HostUse::kPinned, 6 * kMiB);
  EXPECT_TRUE(memory.Take(HostUse::kModules, 5 * kMiB));
}

TEST_F(HostMemoryTest, TheTenantsLimitHoldsForAllItsSessions) {
  page->limit() = 10 * kMiB;
  EXPECT_TRUE(memory.Take(HostUse::kStaging, 2 * kMiB)) << "before the terms came";
  Join(memory, 0);
  Join(other, 1);
  EXPECT_EQ(page->Sum(), 2 * kMiB);
  EXPECT_TRUE(other.Take(HostUse::kPinned, 7 * kMiB));
  EXPECT_FALSE(memory.Take(HostUse::kPinned, 2 * kMiB));
  EXPECT_EQ(page->Sum(), 9 * kMiB);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("its host_memory"), std::string::npos) << said[0];
  page->limit() = 11 * kMiB;
  EXPECT_TRUE(memory.Take(HostUse::kPinned, 2 * kMiB));
}

TEST_F(HostMemoryTest, EachUseHasItsLimit) {
  EXPECT_TRUE(memory.Take(HostUse::kLinks, kMaxLinkBytes));
  EXPECT_FALSE(memory.Take(HostUse::kLinks, 1));
  EXPECT_TRUE(memory.Take(HostUse::kModules, kMaxLinkBytes));
  EXPECT_TRUE(memory.MayLoad(1'000'000));
  Join(memory, 0);
  EXPECT_TRUE(memory.MayLoad(2));
  EXPECT_FALSE(memory.MayLoad(3));
}

TEST_F(HostMemoryTest, AShareGivesBackWhatItHas) {
  Join(memory, 0, 10 * kMiB);
  {
    HostMemory::Share share(memory, HostUse::kImages);
    EXPECT_TRUE(share.Resize(8 * kMiB));
    EXPECT_FALSE(share.Resize(11 * kMiB));
    HostMemory::Share moved = std::move(share);
    EXPECT_EQ(moved.bytes(), 8 * kMiB);
    EXPECT_TRUE(moved.Resize(3 * kMiB));
    EXPECT_EQ(memory.used(HostUse::kImages), 3 * kMiB);
  }
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(page->Sum(), 0u);
}

TEST_F(HostMemoryTest, ManyThreadsNeverExceedIt) {
  Join(memory, 0, 100);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 10'000; ++round) {
        if (memory.Take(HostUse::kImages, 30)) memory.Give(HostUse::kImages, 30);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(page->Sum(), 0u);
}

// Each stream that holds no block gets one, but not beyond all limits.
TEST(HostMemorySession, StagingHasALimit) {
  TestSession session;
  HostMemory& memory = session.session->host_memory();
  uint64_t before = memory.used(HostUse::kStaging);
  EXPECT_GT(before, 0u);
  HostMemory::Share rest(memory, HostUse::kStaging);
  ASSERT_TRUE(rest.Resize(kMaxStagingBytes - before));
  std::vector<std::unique_ptr<Stream>> streams;
  StagingBlock block;
  while (true) {
    streams.push_back(std::make_unique<Stream>());
    if (!session.session->staging().Acquire(*streams.back(), Staging::kMaxBlockBytes, &block)) {
      break;
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(
      session.session->staging().Acquire(*streams.back(), Staging::kMaxBlockBytes, &block));
  EXPECT_EQ(memory.used(HostUse::kStaging), kMaxStagingBytes);
}

}  // namespace
}  // namespace longwire::worker::testing
