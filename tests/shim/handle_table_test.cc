// A table's slots are used again, and then hold nothing of what was there before.
#include "client-shim/support/handle_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace longwire::shim {
namespace {

struct Held {
  uint64_t table_index = 0;
  std::atomic<int> fact{7};
  std::mutex mutex;
  std::string name;
  std::vector<std::shared_ptr<int>> owned;
};
using Table = HandleTable<Held, HandleKind::kEvent>;

constexpr size_t kRounds = 4 * Table::kReuseDelay;

TEST(HandleTable, ARecycledSlotIsLikeANewOne) {
  auto table = std::make_unique<Table>();
  auto counted = std::make_shared<int>(1);
  std::set<uint64_t> slots;
  for (size_t i = 0; i < kRounds; ++i) {
    Held* held = table->New();
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(held->fact, 7);
    EXPECT_EQ(held->name, "");
    EXPECT_TRUE(held->owned.empty());
    EXPECT_TRUE(held->mutex.try_lock());
    held->mutex.unlock();
    held->fact = 8;
    held->name = "a name that is too long to lie in the string itself";
    held->owned.push_back(counted);
    slots.insert(held->table_index);
    table->Publish(held);
    ASSERT_TRUE(table->Retire(held));
    table->Recycle(held);
  }
  EXPECT_LE(slots.size(), Table::kReuseDelay + 1) << "no slot was used again";
  EXPECT_LE(counted.use_count(), static_cast<long>(Table::kReuseDelay) + 2)
      << "what they had leaks";
}

TEST(HandleTable, AnOldHandleFindsNothingInItsSlot) {
  auto table = std::make_unique<Table>();
  std::vector<uint64_t> old;
  for (size_t i = 0; i < kRounds; ++i) {
    Held* held = table->New();
    old.push_back(table->Publish(held));
    EXPECT_EQ(table->Find(old.back()), held);
    ASSERT_TRUE(table->Retire(held));
    table->Recycle(held);
  }
  for (uint64_t handle : old) EXPECT_EQ(table->Find(handle), nullptr);
}

}  // namespace
}  // namespace longwire::shim
