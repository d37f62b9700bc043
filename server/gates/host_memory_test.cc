// The pages of host memory: what a worker maps, and how the daemon gives slots.
#include <gtest/gtest.h>

#include "server/gates/host_memory_table.h"
#include "server/protocol/message.h"
#include "wire/rings/segment.h"

namespace longwire::gates {
namespace {

class HostMemoryTableTest : public testing::Test {
 protected:
  HostMemoryTableTest() { EXPECT_TRUE(wire::LocalPair(&daemon, &worker)); }

  std::shared_ptr<HostMemoryPage> Open(uint64_t session, const std::string& tenant,
                                       uint64_t former = 0) {
    HostMemoryTerms terms;
    terms.tenant = tenant;
    terms.session_limit = 7;
    EXPECT_TRUE(table.Opened(session, 100, terms, daemon.get(), former));
    auto packet = wire::ReceiveMessage(worker.get(), std::chrono::milliseconds(1000));
    if (!packet || packet->descriptors.size() != 1) return nullptr;
    EXPECT_EQ(message::Unpack(packet->bytes, &told), wire::WireResult::kOk);
    return HostMemoryPage::Map(std::move(packet->descriptors[0]));
  }

  HostMemoryTable table;
  HostMemoryTerms told;
  wire::Descriptor daemon, worker;
};

TEST_F(HostMemoryTableTest, SessionsOfATenantShareAPage) {
  auto first = Open(1, "a");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(told.slot, 0u);
  EXPECT_EQ(told.session_limit, 7u);
  auto second = Open(2, "a");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(told.slot, 1u);
  auto other = Open(3, "b");
  ASSERT_NE(other, nullptr);
  first->used(0) = 30;
  second->used(1) = 12;
  other->used(0) = 5;
  EXPECT_EQ(table.Used("a"), 42u);
  EXPECT_EQ(first->Sum(), 42u);
  EXPECT_EQ(table.UsedBy(1), 30u);
  EXPECT_EQ(table.UsedBy(2), 12u);
  EXPECT_EQ(table.UsedBy(4), 0u);
  EXPECT_EQ(table.Used("b"), 5u);
  EXPECT_EQ(first->limit().load(), 100u);
  table.SetLimit("a", 50);
  EXPECT_EQ(second->limit().load(), 50u);
  table.Ended(1);
  EXPECT_EQ(table.Used("a"), 12u);
  Open(4, "a");
  EXPECT_EQ(told.slot, 0u) << "of the one that ended";
  for (uint64_t session : {2, 3, 4, 5}) table.Ended(session);
  EXPECT_EQ(table.Used("a"), 0u);
}

TEST_F(HostMemoryTableTest, ASessionThatGoesOnForAnotherOneCountsWithItOnce) {
  auto page = Open(1, "a");
  ASSERT_NE(page, nullptr);
  Open(2, "a");
  page->used(0) = 30;
  page->used(1) = 5;
  Open(3, "a", 1);
  ASSERT_EQ(told.slot, 2u);
  page->used(2) = 20;
  EXPECT_EQ(table.Used("a"), 35u);
  page->used(2) = 32;
  EXPECT_EQ(table.Used("a"), 37u);
  table.Ended(1);
  EXPECT_EQ(table.Used("a"), 37u);
  Open(4, "a");
  ASSERT_EQ(told.slot, 0u);
  page->used(0) = 10;
  EXPECT_EQ(table.Used("a"), 47u) << "who has its place now is another one";
}

TEST_F(HostMemoryTableTest, OnlySuchAPageIsMapped) {
  EXPECT_EQ(HostMemoryPage::Map(wire::Descriptor()), nullptr);
  EXPECT_EQ(HostMemoryPage::Map(wire::MakeSegment("small", 4096)), nullptr);
}

}  // namespace
}  // namespace longwire::gates
