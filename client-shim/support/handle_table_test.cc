#include "client-shim/support/handle_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace longwire::shim {
namespace {

struct Object {
  uint64_t table_index = 0;
  int number = 7;
  std::vector<int> list;
};
using Table = HandleTable<Object, HandleKind::kEvent>;

class HandleTableTest : public ::testing::Test {
 protected:
  struct Made {
    Object* object;
    uint64_t handle;
  };
  Made Make() {
    Object* object = table_.New();
    return {object, table_.Publish(object)};
  }
  void End(const Made& made) {
    EXPECT_TRUE(table_.Retire(made.object));
    table_.Recycle(made.object);
  }
  // Has slots rest, until the next New takes the one that was recycled before.
  void RestOthers() {
    std::vector<Made> others;
    for (size_t i = 0; i < Table::kReuseDelay; ++i) others.push_back(Make());
    for (const Made& other : others) End(other);
  }

  Table& table_ = *new Table;  // 128 KiB
};

TEST_F(HandleTableTest, AnObjectIsFoundFromPublishToRetire) {
  Object* object = table_.New();
  const uint64_t handle = table_.Publish(object);
  EXPECT_EQ(table_.Find(handle), object);
  EXPECT_TRUE(table_.Retire(object));
  EXPECT_EQ(table_.Find(handle), nullptr);
  EXPECT_FALSE(table_.Retire(object));
}

TEST_F(HandleTableTest, ASlotIsReusedAsANewValue) {
  RestOthers();
  const Made first = Make();
  first.object->number = 1;
  first.object->list = {1, 2, 3};
  End(first);
  // Of the slots at rest the oldest is used first: the first one's turn comes after the others.
  Made again{};
  for (size_t i = 0; i <= Table::kReuseDelay; ++i) {
    again = Make();
    if (again.object == first.object) break;
    End(again);
  }
  ASSERT_EQ(again.object, first.object);
  EXPECT_EQ(again.object->number, 7);
  EXPECT_TRUE(again.object->list.empty());
  EXPECT_NE(again.handle, first.handle);
  EXPECT_EQ(table_.Find(first.handle), nullptr);
  EXPECT_EQ(table_.Find(again.handle), again.object);
}

TEST_F(HandleTableTest, ASlotRestsBeforeItIsReused) {
  const Made first = Make();
  std::vector<Made> others;
  for (size_t i = 0; i < Table::kReuseDelay; ++i) others.push_back(Make());
  End(first);
  for (size_t i = 0; i + 1 < Table::kReuseDelay; ++i) End(others[i]);
  // With 256 slots at rest a new one is taken, with 257 the one that rests longest.
  EXPECT_EQ(Make().object->table_index, Table::kReuseDelay + 1);
  End(others.back());
  EXPECT_EQ(Make().object, first.object);
}

TEST_F(HandleTableTest, StaleHandlesStayStaleOverAllGenerations) {
  RestOthers();
  Made made = Make();
  const Object* slot = made.object;
  const uint64_t first = made.handle;
  std::set<uint64_t> handles = {first};
  const uint64_t generations = uint64_t{1} << Table::kGenerationBits;
  while (handles.size() < generations) {
    EXPECT_TRUE(table_.Retire(made.object));
    ASSERT_EQ(table_.Find(made.handle), nullptr);
    made.handle = table_.Publish(made.object);
    ASSERT_TRUE(handles.insert(made.handle).second);
    ASSERT_EQ(table_.Find(first), nullptr);
    ASSERT_EQ(table_.Find(made.handle), slot);
  }
}

TEST_F(HandleTableTest, OtherValuesAreNoHandles) {
  const Made made = Make();
  Object* unpublished = table_.New();
  EXPECT_EQ(table_.Find(0), nullptr);
  EXPECT_EQ(table_.Find(~uint64_t{0}), nullptr);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(table_.Find(made.handle ^ uint64_t{1} << bit), nullptr) << bit;
  }
  HandleTable<Object, HandleKind::kStream> streams;
  Object* stream = streams.New();
  const uint64_t handle = streams.Publish(stream);
  EXPECT_EQ(streams.Find(handle), stream);
  EXPECT_EQ(table_.Find(handle), nullptr);
  EXPECT_EQ(streams.Find(made.handle), nullptr);
  // The next slot, of which no handle was given out.
  EXPECT_EQ(unpublished->table_index, made.object->table_index + 1);
  EXPECT_EQ(table_.Find(made.handle + (uint64_t{1} << Table::kLowBits)), nullptr);
}

TEST_F(HandleTableTest, HandlesLieBelowTheWindowsOfDevices) {
  HandleTable<Object, HandleKind::kNotification> highest;
  EXPECT_LT(highest.Publish(highest.New()), 0x200000000000u);
}

TEST_F(HandleTableTest, ItGrowsAndObjectsStayWhereTheyAre) {
  std::vector<Made> made;
  for (int i = 0; i < 5000; ++i) {
    made.push_back(Make());
    made.back().object->number = i;
  }
  std::set<uint64_t> handles;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(table_.Find(made[i].handle), made[i].object);
    ASSERT_EQ(made[i].object->number, i);
    ASSERT_EQ(made[i].object->table_index, static_cast<uint64_t>(i));
    handles.insert(made[i].handle);
  }
  EXPECT_EQ(handles.size(), 5000u);
}

TEST_F(HandleTableTest, OneOfManyThreadsRetires) {
  for (int round = 0; round < 100; ++round) {
    const Made made = Make();
    std::atomic<int> retired{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { retired += table_.Retire(made.object) ? 1 : 0; });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(retired, 1);
  }
}

// A smaller one, as nobody makes 16 million objects here.
TEST(HandleTable, AFullTableGivesNothingUntilSomethingEnds) {
  using Small = HandleTable<Object, HandleKind::kEvent, 10>;
  auto& table = *new Small;
  std::vector<Object*> objects;
  for (uint64_t i = 0; i < Small::kMaxSlots; ++i) {
    objects.push_back(table.New());
    ASSERT_NE(objects.back(), nullptr) << i;
    table.Publish(objects.back());
  }
  EXPECT_EQ(table.New(), nullptr);
  // Slots rest before they are used again: a stale handle must not mean a new object at once.
  for (size_t i = 0; i <= Small::kReuseDelay; ++i) {
    EXPECT_EQ(table.New(), nullptr) << i;
    EXPECT_TRUE(table.Retire(objects[i]));
    table.Recycle(objects[i]);
  }
  EXPECT_EQ(table.New(), objects[0]);
  EXPECT_EQ(table.New(), nullptr);
}

// While the table grows, what was published is found, and what was retired is not.
TEST_F(HandleTableTest, ReadersNeedNoLock) {
  constexpr int kObjects = 4000;
  std::vector<std::atomic<uint64_t>> staying(kObjects), ended(kObjects);
  std::atomic<int> ready{0};
  std::thread writer([&] {
    for (int i = 0; i < kObjects; ++i) {
      Object* object = table_.New();
      object->number = i;
      staying[i] = table_.Publish(object);
      const Made brief = Make();
      EXPECT_TRUE(table_.Retire(brief.object));
      ended[i] = brief.handle;
      ready = i + 1;
    }
  });
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      for (int last = 0; last < kObjects;) {
        last = ready;
        if (last == 0) continue;
        const Object* newest = table_.Find(staying[last - 1]);
        if (newest == nullptr || newest->number != last - 1) ++wrong;
        if (table_.Find(ended[last - 1]) != nullptr) ++wrong;
      }
    });
  }
  writer.join();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace longwire::shim
