// Clusters: which blocks are together, what they reach of one another, and how they meet.
#include <gtest/gtest.h>

#include <numeric>

#include "softgpu/engine/test_device.h"
#include "softgpu/engine/texture/tensor_map.h"

namespace softgpu::testing {
namespace {

constexpr int kIllegalAddress = 700, kTimeout = 702, kIllegalInstruction = 715, kMisaligned = 716,
              kTooLarge = 720, kInvalidClusterSize = 912;

struct Place {
  Size cluster, clusters, block, blocks;
  unsigned rank, count, is_explicit;
};

// Of 32 x 16 numbers in boxes of 16 x 4.
TensorMap MapOf(const Array<int>& tensor) {
  TensorMap map = {};
  map.address = tensor.address();
  map.strides[0] = 32 * sizeof(int);
  map.dimensions[0] = 31;
  map.dimensions[1] = 15;
  map.box[0] = 16;
  map.box[1] = 4;
  map.kind = TensorMap::kTiled;
  map.rank = 2;
  map.element_bits = 32;
  map.copies = true;
  return map;
}

class Clusters : public ::testing::Test {
 protected:
  void ExpectPlaces(Size grid);
  // A fault of block 0 of a cluster of two.
  void ExpectFault(uint32_t rank, int how, int code, const std::string& words) {
    Array<int> out(4);
    const Status status = device.Run("touch", {4}, {32}, out, rank, how);
    EXPECT_EQ(status.code, code) << status.message;
    EXPECT_NE(status.message.find(words), std::string::npos) << status.message;
  }

  Device device{"sm_90/clusters"};
};

void Clusters::ExpectPlaces(Size grid) {
  const Size c = device.cluster.x == 0 ? Size{} : device.cluster;
  Array<Place> out(grid.x * grid.y * grid.z);
  EXPECT_RUNS(device.Run("places", grid, {64}, out));
  for (uint32_t i = 0; i < out.size(); ++i) {
    const Place& place = out[i];
    const uint32_t x = i % grid.x, y = i / grid.x % grid.y, z = i / grid.x / grid.y;
    EXPECT_EQ(place.cluster.x * c.x + place.block.x, x) << i;
    EXPECT_EQ(place.cluster.y * c.y + place.block.y, y) << i;
    EXPECT_EQ(place.cluster.z * c.z + place.block.z, z) << i;
    EXPECT_TRUE(place.block.x < c.x && place.block.y < c.y && place.block.z < c.z) << i;
    EXPECT_EQ(place.clusters.x * c.x, grid.x);
    EXPECT_EQ(place.clusters.y * c.y, grid.y);
    EXPECT_EQ(place.clusters.z * c.z, grid.z);
    EXPECT_EQ(place.blocks.x, c.x);
    EXPECT_EQ(place.blocks.y, c.y);
    EXPECT_EQ(place.blocks.z, c.z);
    EXPECT_EQ(place.rank, (place.block.z * c.y + place.block.y) * c.x + place.block.x) << i;
    EXPECT_EQ(place.count, c.x * c.y * c.z);
    EXPECT_EQ(place.is_explicit, device.cluster.x != 0 ? 1u : 0u);
  }
}

TEST_F(Clusters, BlocksKnowTheirPlaces) {
  ExpectPlaces({6, 4, 2});
  for (Size cluster : {Size{1, 1, 1}, {2, 1, 1}, {1, 4, 1}, {3, 2, 2}, {2, 2, 2}, {6, 1, 2}}) {
    device.cluster = cluster;
    ExpectPlaces({6, 4, 2});
  }
}

TEST_F(Clusters, WrongSizesAreRefused) {
  Array<Place> out(1);
  const auto run = [&](const char* kernel, Size cluster, Size grid) {
    device.cluster = cluster;
    return device.Run(kernel, grid, {32}, out).code;
  };
  EXPECT_EQ(run("places", {3, 1, 1}, {8}), kInvalidClusterSize);
  EXPECT_EQ(run("places", {2, 0, 1}, {8}), kInvalidClusterSize);
  EXPECT_EQ(run("places", {17, 1, 1}, {17}), kInvalidClusterSize);
  EXPECT_EQ(run("places", {1 << 20, 1 << 15, 1 << 15}, {1 << 20, 1 << 15, 1 << 15}),
            kInvalidClusterSize);
  EXPECT_EQ(run("compiled_for_six", {0, 0, 0}, {4, 3}), 0);
  EXPECT_EQ(run("compiled_for_six", {2, 3, 1}, {4, 3}), 0);
  EXPECT_EQ(run("compiled_for_six", {1, 3, 1}, {4, 3}), kInvalidClusterSize);
  EXPECT_EQ(run("compiled_for_six", {0, 0, 0}, {4, 4}), kInvalidClusterSize);
  EXPECT_EQ(run("wants_clusters", {0, 0, 0}, {4}), kInvalidClusterSize);
  EXPECT_EQ(run("wants_clusters", {4, 1, 1}, {4}), 0);
  EXPECT_EQ(run("at_most_four", {4, 1, 1}, {8}), 0);
  EXPECT_EQ(run("at_most_four", {8, 1, 1}, {8}), kInvalidClusterSize);
}

TEST_F(Clusters, NumbersGoRound) {
  const int rounds = 5;
  for (uint32_t size : {1u, 2u, 4u, 8u, 16u}) {
    device.cluster = {size, 1, 1};
    Array<int> out(48 * 32);
    EXPECT_RUNS(device.Run("ring", {48}, {32}, out, rounds));
    for (uint32_t i = 0; i < 48 * 32; ++i) {
      const uint32_t block = i / 32, first = block / size * size;
      const uint32_t from = first + (block - first + 4 * size * rounds - rounds) % size;
      ASSERT_EQ(out[i], static_cast<int>(from * 100 + i % 32)) << size << " blocks, " << i;
    }
  }
}

TEST_F(Clusters, AddressesInTheWindow) {
  const uint32_t size = 4;
  Array<int> out(8 * 32);
  Array<unsigned> asked(8 * 6);
  device.cluster = {size, 1, 1};
  EXPECT_RUNS(device.Run("window", {8}, {32}, out, asked));
  for (uint32_t block = 0; block < 8; ++block) {
    const uint32_t rank = block % size;
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t extra = i == 0 ? 64 : i == 1 ? (size - 1 - rank) * 10 + 7 : 0;
      EXPECT_EQ(out[block * 32 + i], static_cast<int>(i % size * 1000 + i + 100000 * extra)) << i;
    }
    const bool last = rank == size - 1;
    EXPECT_EQ(asked[block * 6], last ? 1u : 0u);
    EXPECT_EQ(asked[block * 6 + 1], 1u);
    EXPECT_EQ(asked[block * 6 + 2], size - 1);
    EXPECT_EQ(asked[block * 6 + 3], size - 1);
    EXPECT_EQ(asked[block * 6 + 4], 1u);
    EXPECT_EQ(asked[block * 6 + 5], rank);
  }
}

TEST_F(Clusters, ThoseWhoLeftHaveArrived) {
  for (uint32_t size : {1u, 3u, 8u}) {
    device.cluster = {size, 1, 1};
    Array<int> out(24);
    EXPECT_RUNS(device.Run("leave_early", {24}, {128}, out));
    const int sum = static_cast<int>(5 * size + size * (size - 1) / 2);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 32 * sum) << i;
  }
}

TEST_F(Clusters, BarriersOfOtherBlocks) {
  device.cluster = {8, 1, 1};
  Array<int> out(4);
  EXPECT_RUNS(device.Run("arrive_remotely", {32}, {96}, out));
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 96 * 28) << i;
}

TEST_F(Clusters, StoresAndCopiesIntoOtherBlocks) {
  const uint32_t size = 4;
  device.cluster = {size, 1, 1};
  Array<int> out(8 * 67);
  EXPECT_RUNS(device.Run("send", {8}, {64}, out));
  for (uint32_t block = 0; block < 8; ++block) {
    const uint32_t before = (block + size - 1) % size, first = (block + size - 2) % size;
    for (uint32_t i = 0; i < 64; ++i) {
      EXPECT_EQ(out[block * 67 + i], static_cast<int>(first * 64 + i + 1000)) << block << ", " << i;
    }
    EXPECT_EQ(out[block * 67 + 64], static_cast<int>(before));
    EXPECT_EQ(out[block * 67 + 65], 99);
    EXPECT_EQ(out[block * 67 + 66], static_cast<int>(before + 1));
  }
}

TEST_F(Clusters, OneCopyForManyBlocks) {
  device.cluster = {4, 1, 1};
  Array<int> in(128), out(4 * 64);
  std::iota(in.data(), in.data() + in.size(), 1);
  const unsigned short mask = 0b1010;
  EXPECT_RUNS(device.Run("fetch_for_many", {4}, {64}, in, out, mask));
  for (int i = 0; i < 4 * 64; ++i) {
    const int block = i / 64, row = (mask >> block & 1) * (i % 64 + 1);
    EXPECT_EQ(out[i], row + (block == 3 ? 1000 * (i % 64 + 65) : 0)) << i;
  }
}

TEST_F(Clusters, OneBoxForManyBlocks) {
  device.cluster = {4, 1, 1};
  Array<int> tensor(32 * 16), out(4 * 64);
  std::iota(tensor.data(), tensor.data() + tensor.size(), 0);
  const TensorMap map = MapOf(tensor);
  const unsigned short mask = 0b1101;
  EXPECT_RUNS(device.Run("fetch_box", {4}, {64}, map, out, mask));
  for (int i = 0; i < 4 * 64; ++i) {
    const int at = i % 64, expected = (at / 16 + 1) * 32 + at % 16 + 4;
    EXPECT_EQ(out[i], (mask >> i / 64 & 1) != 0 ? expected : -1) << i;
  }
}

TEST_F(Clusters, BoxesAtIllegalPlaces) {
  Array<int> tensor(32 * 16, 0);
  const TensorMap map = MapOf(tensor);
  const auto move = [&](int x, int y, bool store) {
    return device.Run("move_box", {1}, {64}, map, x, y, store).code;
  };
  for (const auto& [x, y] : {std::pair{0, 0}, {-4, -3}, {28, 14}, {100, 0}, {0, -100}}) {
    EXPECT_EQ(move(x, y, false), 0) << x << ", " << y;
  }
  for (int x : {-5, 1, 27, 59, 91}) {
    EXPECT_EQ(move(x, 0, false), kIllegalInstruction) << x;
    EXPECT_EQ(move(x, 0, true), kIllegalInstruction) << x;
  }
  for (const auto& [x, y] : {std::pair{0, -3}, {-4, -3}, {-4, 0}}) {
    EXPECT_EQ(move(x, y, true), kIllegalInstruction) << x << ", " << y;
  }
  EXPECT_EQ(std::accumulate(tensor.data(), tensor.data() + tensor.size(), 0), 0);
  EXPECT_EQ(move(28, 14, true), 0);
  EXPECT_EQ(std::accumulate(tensor.data(), tensor.data() + tensor.size(), 0), 7 * 4 * 2);
  EXPECT_EQ(tensor[14 * 32 + 28], 7);
}

TEST_F(Clusters, BlocksThatDoNotExist) {
  device.cluster = {2, 1, 1};
  for (int how : {0, 1}) {
    ExpectFault(2, how, kIllegalAddress, "shared memory of block 2 of a cluster of 2 blocks");
    ExpectFault(4000000000, how, kIllegalAddress, "of a cluster of 2 blocks");
  }
  ExpectFault(1, 2, kIllegalAddress, "illegal address");
  ExpectFault(1, 3, kMisaligned, "misaligned address");
  device.cluster = {0, 0, 0};
  ExpectFault(1, 0, kIllegalAddress, "shared memory of block 1 of a cluster of 1 block");
  Array<int> in(128), out(4 * 64);
  const unsigned short mask = 0b10;
  EXPECT_EQ(device.Run("fetch_for_many", {1}, {64}, in, out, mask).code, kIllegalAddress);
}

TEST_F(Clusters, BarriersThatNobodyReaches) {
  device.cluster = {2, 1, 1};
  const Status status = device.Run("meet_alone", {4}, {32});
  EXPECT_EQ(status.code, kTimeout) << status.message;
  EXPECT_NE(status.message.find("nobody else can reach"), std::string::npos) << status.message;
}

TEST_F(Clusters, WaitForThoseBehind) {
  device.cluster = {4, 1, 1};
  Array<unsigned> turn(1);
  Array<int> out(40, -1);
  EXPECT_RUNS(device.Run("chain", {160}, {32}, turn, out));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out[i], i);
}

TEST_F(Clusters, CooperativeOnesMustFit) {
  device.cooperative = true;
  device.cluster = {16, 1, 1};
  Array<int> out(256 * 32);
  EXPECT_RUNS(device.Run("ring", {256}, {32}, out, 1));
  EXPECT_EQ(device.Run("ring", {1024}, {32}, out, 1).code, kTooLarge);
}

}  // namespace
}  // namespace softgpu::testing
