#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "client-shim/mirror/host_memory.h"
#include "client-shim/session/transfers.h"
#include "client-shim/support/handle_table.h"

namespace longwire::shim {
namespace {

struct Object {
  uint64_t table_index = 0;
  int value = 0;
};

TEST(HandleTable, AStaleHandleIsNotFound) {
  HandleTable<Object, HandleKind::kEvent> table;
  Object* object = table.New();
  uint64_t handle = table.Publish(object);
  EXPECT_EQ(object, table.Find(handle));
  EXPECT_EQ(nullptr, table.Find(handle + 16));
  EXPECT_EQ(nullptr, table.Find(handle + 1));
  EXPECT_EQ(nullptr, table.Find(0));
  EXPECT_EQ(nullptr, table.Find(UINT64_MAX));
  HandleTable<Object, HandleKind::kStream> other;
  EXPECT_EQ(nullptr, other.Find(handle));
  EXPECT_TRUE(table.Retire(object));
  EXPECT_FALSE(table.Retire(object)) << "destroyed twice";
  EXPECT_EQ(nullptr, table.Find(handle));
  table.Recycle(object);
  for (int i = 0; i < 1000; ++i) {
    Object* next = table.New();
    uint64_t fresh = table.Publish(next);
    ASSERT_NE(handle, fresh);
    ASSERT_EQ(nullptr, table.Find(handle));
    table.Retire(next);
    table.Recycle(next);
  }
}

TEST(HostPlace, GatherAndScatterAreInverseFromAnyOffset) {
  constexpr uint64_t kWidth = 7, kRows = 5, kSlices = 3, kPitch = 11, kSlicePitch = 80;
  std::vector<std::byte> from(kSlicePitch * kSlices), to(from.size(), std::byte{0xee});
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i);
  HostPlace source{from.data(), kPitch, kSlicePitch, kWidth, kRows, kSlices};
  HostPlace target{to.data(), kPitch, kSlicePitch, kWidth, kRows, kSlices};
  std::vector<std::byte> packed(source.bytes());
  for (uint64_t piece : {1, 4, 7, 13, 105}) {
    std::fill(to.begin(), to.end(), std::byte{0xee});
    for (uint64_t offset = 0; offset < packed.size(); offset += piece) {
      auto part =
          std::span(packed).subspan(offset, std::min<size_t>(piece, packed.size() - offset));
      source.Gather(offset, part);
      target.Scatter(offset, part);
    }
    for (uint64_t slice = 0; slice < kSlices; ++slice) {
      for (uint64_t row = 0; row < kRows; ++row) {
        size_t at = slice * kSlicePitch + row * kPitch;
        ASSERT_EQ(0, std::memcmp(&from[at], &to[at], kWidth));
        ASSERT_EQ(std::byte{0xee}, to[at + kWidth]);
      }
    }
  }
}

TEST(Transfers, BytesOutsideTheAnnouncedPlaceAreRefused) {
  Transfers transfers;
  std::vector<std::byte> room(100, std::byte{0}), data(60, std::byte{1});
  transfers.ExpectDownload(7, HostPlace::Linear(room.data(), 64), false);
  EXPECT_FALSE(transfers.Arrive(7, 10, data));
  EXPECT_FALSE(transfers.Arrive(7, UINT64_MAX, data));
  EXPECT_TRUE(transfers.Arrive(7, 4, data));
  EXPECT_EQ(std::byte{1}, room[63]);
  EXPECT_EQ(std::byte{0}, room[64]);
  transfers.DropDownload(7);
  room[0] = std::byte{9};
  EXPECT_TRUE(transfers.Arrive(7, 0, data)) << "nobody wants it any more";
  EXPECT_EQ(std::byte{9}, room[0]);
}

}  // namespace
}  // namespace longwire::shim
