// A driver that lacks functions: what needs one is refused, the session goes on.
#include "server/worker/support/driver.h"

#include <gtest/gtest.h>

#include <array>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

constexpr uint64_t kStream = 11;

class Lacking : public ::testing::Test {
 protected:
  // The fake driver has what most tests need: none of the functions asked for here.
  Lacking() { session_.CreateStream(kStream); }

  void ExpectNotSupported(uint64_t position) {
    DownRecord error = session_.Expect(wire::DownKind::kError, [&](const DownRecord& record) {
      return record.header.position == position;
    });
    EXPECT_EQ(error.header.code, CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(error.header.flags & (wire::kSticky | wire::kSessionOver), 0);
    EXPECT_FALSE(session_.over);
  }

  TestSession session_;
};

TEST_F(Lacking, NoEntryOfTheTableIsNull) {
  DriverTable table;
  EXPECT_EQ(table.cuMemcpy2DAsync_v2(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table.cuInit(0), CUDA_ERROR_NOT_SUPPORTED);
  void* entries[sizeof(table) / sizeof(void*)];
  std::memcpy(entries, &table, sizeof(entries));
  for (void* entry : entries) ASSERT_NE(entry, nullptr);
}

TEST_F(Lacking, ACopyOfRows) {
  std::array<std::byte, 8> rows{}, memory{};
  calls::lwCopyToDevice copy;
  copy.bytes = rows.size();
  copy.place.address = reinterpret_cast<uint64_t>(memory.data());
  copy.place.width_bytes = copy.place.pitch = 4;
  copy.place.rows = copy.place.height = 2;
  copy.place.slices = 1;
  copy.data = rows;
  ExpectNotSupported(session_.Send(copy, kStream));
}

TEST_F(Lacking, AMemset) {
  calls::lwMemset memset;
  memset.element_bytes = 4;
  memset.width = 1;
  memset.rows = 1;
  ExpectNotSupported(session_.Send(memset, kStream));
}

TEST_F(Lacking, AGeneratedCall) {
  uint64_t position = session_.Send(calls::cuCtxGetLimit{});
  DownRecord reply = session_.ExpectReply(position);
  EXPECT_EQ(reply.header.code, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_FALSE(session_.over);
}

}  // namespace
}  // namespace longwire::worker::testing
