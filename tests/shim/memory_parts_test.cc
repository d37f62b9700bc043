#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "client-shim/free_ranges.h"
#include "client-shim/handle_table.h"
#include "client-shim/host_memory.h"
#include "client-shim/transfers.h"

namespace longwire::shim {
namespace {

TEST(FreeRanges, NeighboursAreJoined) {
  FreeRanges free;
  free.Add(0x1000, 0x1000);
  free.Add(0x3000, 0x1000);
  EXPECT_EQ(0x1000u, free.largest());
  free.Add(0x2000, 0x1000);
  EXPECT_EQ(0x3000u, free.largest());
  EXPECT_TRUE(free.Contains(0x1800, 0x2800));
  EXPECT_FALSE(free.Contains(0x1800, 0x2801));
  EXPECT_FALSE(free.Contains(0xfff, 1));
}

TEST(FreeRanges, TheSmallestThatFitsIsTaken) {
  FreeRanges free;
  free.Add(0x10000, 0x8000);
  free.Add(0x40000, 0x2000);
  free.Add(0x80000, 0x4000);
  uint64_t address = 0;
  ASSERT_TRUE(free.Take(0x1800, &address));
  EXPECT_EQ(0x40000u, address);
  ASSERT_TRUE(free.Take(0x4000, &address));
  EXPECT_EQ(0x80000u, address);
  EXPECT_FALSE(free.Take(0x8001, &address));
  EXPECT_EQ(0x8000u + 0x800, free.total());
}

TEST(FreeRanges, WhatIsTakenNeverOverlapsAndAllComesBack) {
  FreeRanges free;
  constexpr uint64_t kTotal = 1 << 20;
  free.Add(0x100000, kTotal);
  std::map<uint64_t, uint64_t> taken;
  std::mt19937_64 random(5);
  for (int step = 0; step < 20000; ++step) {
    uint64_t address = 0, bytes = 1 + random() % 5000;
    if (random() % 2 == 0 && free.Take(bytes, &address)) {
      auto after = taken.lower_bound(address);
      ASSERT_TRUE(after == taken.end() || address + bytes <= after->first);
      if (after != taken.begin()) {
        --after;
        ASSERT_LE(after->first + after->second, address);
      }
      taken[address] = bytes;
    } else if (!taken.empty()) {
      auto any = taken.lower_bound(0x100000 + random() % kTotal);
      if (any == taken.end()) any = taken.begin();
      free.Add(any->first, any->second);
      taken.erase(any);
    }
  }
  for (auto [address, bytes] : taken) free.Add(address, bytes);
  EXPECT_EQ(kTotal, free.largest());
}

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
