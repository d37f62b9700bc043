#include "client-shim/memory/pool_kinds.h"

#include <gtest/gtest.h>

#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/managed_memory.h"
#include "client-shim/testing/fake_session.h"

namespace longwire::shim {
namespace {

using testing::kMiB;

class PoolKindsTest : public testing::WithContext, public ::testing::WithParamInterface<PoolKind> {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    stream_ = NewTestStream();
  }
  uint64_t Allocate() {
    uint64_t address = 0;
    EXPECT_EQ(AllocateOfKind(GetParam(), context_, kMiB, &address), CUDA_SUCCESS);
    return address;
  }
  static bool IsThere(uint64_t address) {
    ManagedRange managed;
    HostRange host;
    return GetParam() == PoolKind::kManaged ? FindManaged(address, &managed)
                                            : FindHost(address, &host);
  }
  static void Free(uint64_t address, std::vector<StreamPoint> before) {
    for (StreamPoint& point : before) Retain(point.stream);
    FreeBehind(GetParam(), address, std::move(before));
  }

  Stream* stream_ = nullptr;
};

TEST_P(PoolKindsTest, WithoutEarlierWorkItIsFreedAtOnce) {
  const uint64_t address = Allocate();
  EXPECT_TRUE(IsThere(address));
  Free(address, {});
  EXPECT_FALSE(IsThere(address));
}

TEST_P(PoolKindsTest, WorkBeforeTheFreeKeepsIt) {
  const uint64_t address = Allocate();
  Stream* other = NewTestStream();
  for (Stream* stream : {stream_, other}) fake_.Hold(stream);
  Free(address, {{stream_, Work(stream_)}, {other, Work(other)}});
  EXPECT_TRUE(IsThere(address));
  fake_.LetGo(stream_);
  FreeWhatIsDue();
  EXPECT_TRUE(IsThere(address)) << "the other stream is not there yet";
  fake_.LetGo(other);
  FreeWhatIsDue();
  EXPECT_FALSE(IsThere(address));
}

TEST_P(PoolKindsTest, TheNextAllocationFreesWhatIsDue) {
  const uint64_t first = Allocate();
  fake_.Hold(stream_);
  Free(first, {{stream_, Work(stream_)}});
  fake_.LetGo(stream_);
  const uint64_t second = Allocate();
  EXPECT_TRUE(first == second || !IsThere(first));
  Free(second, {});
}

INSTANTIATE_TEST_SUITE_P(, PoolKindsTest, ::testing::Values(PoolKind::kManaged, PoolKind::kHost),
                         [](const auto& kind) {
                           return kind.param == PoolKind::kManaged ? "Managed" : "Host";
                         });

TEST(PoolPlaces, WhereMemoryOfAPoolCanLie) {
  constexpr auto kManaged = CU_MEM_ALLOCATION_TYPE_MANAGED, kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;
  struct Row {
    CUmemLocationType type;
    int id;
    CUmemAllocationType memory;
    CUresult result;
    PoolPlace place;
  };
  const Row rows[] = {
      {CU_MEM_LOCATION_TYPE_DEVICE, 0, kPinned, CUDA_SUCCESS, {PoolKind::kDevice, 0}},
      {CU_MEM_LOCATION_TYPE_DEVICE, 0, kManaged, CUDA_SUCCESS, {PoolKind::kManaged, 0}},
      {CU_MEM_LOCATION_TYPE_DEVICE, 1, kPinned, CUDA_ERROR_INVALID_VALUE, {}},
      {CU_MEM_LOCATION_TYPE_DEVICE, -1, kManaged, CUDA_ERROR_INVALID_VALUE, {}},
      {CU_MEM_LOCATION_TYPE_HOST, 0, kPinned, CUDA_SUCCESS, {PoolKind::kHost, PoolPlace::kOnHost}},
      {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, kPinned, CUDA_ERROR_NOT_SUPPORTED, {}},
      {CU_MEM_LOCATION_TYPE_HOST_NUMA,
       0,
       kManaged,
       CUDA_SUCCESS,
       {PoolKind::kManaged, PoolPlace::kOnHost}},
      {CU_MEM_LOCATION_TYPE_NONE,
       0,
       kManaged,
       CUDA_SUCCESS,
       {PoolKind::kManaged, PoolPlace::kAnywhere}},
      {CU_MEM_LOCATION_TYPE_NONE, 0, kPinned, CUDA_ERROR_INVALID_VALUE, {}},
  };
  testing::FakeSession::Get();  // the one device
  for (const Row& row : rows) {
    PoolPlace place;
    EXPECT_EQ(PlaceOf({.type = row.type, .id = row.id}, row.memory, &place), row.result)
        << row.type << " " << row.memory;
    if (row.result == CUDA_SUCCESS) {
      EXPECT_EQ(place, row.place) << row.type << " " << row.memory;
    }
  }
}

}  // namespace
}  // namespace longwire::shim
