#include "server/worker/issue/next_work.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/name_number.h"
#include "longwire/calls.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

class NextWorkTest : public ::testing::Test {
 protected:
  NextWorkTest() {
    for (uint64_t id = 1; id <= 2; ++id) {
      auto function = std::make_shared<Function>();
      function->name = NameOf(id);
      functions_.Insert(id, function);
    }
  }
  static std::string NameOf(uint64_t id) { return "kernel" + std::to_string(id); }
  void Append(CallId call, std::span<const std::byte> arguments) {
    wire::RecordHeader header{};
    header.bytes = static_cast<uint32_t>(sizeof(header) + arguments.size());
    header.call = static_cast<uint16_t>(call);
    const size_t begin = log_.size();
    log_.resize(begin + wire::AlignRecord(header.bytes));
    std::memcpy(&log_[begin], &header, sizeof(header));
    if (!arguments.empty()) {
      std::memcpy(&log_[begin + sizeof(header)], arguments.data(), arguments.size());
    }
  }
  void Launch(uint64_t function) {
    calls::lwLaunch launch;
    launch.function = function;
    wire::Writer writer;
    launch.Encode(writer);
    Append(CallId::lwLaunch, writer.span());
  }

  HandleTable<Function> functions_;
  std::vector<std::byte> log_;
};

TEST_F(NextWorkTest, CountsKernelsAndNamesTheFirst) {
  EXPECT_EQ(0u, NextWorkIn(log_, functions_).launches);
  Append(CallId::lwCopyData, {});
  Launch(2);
  Launch(77);  // no function of the session
  Launch(1);
  const keeper::NextWork next = NextWorkIn(log_, functions_);
  EXPECT_EQ(3u, next.launches);
  EXPECT_EQ(base::NumberOfName("kernel2"), next.kernels[0]);
  EXPECT_EQ(0u, next.kernels[1]);
  EXPECT_EQ(base::NumberOfName("kernel1"), next.kernels[2]);
  EXPECT_EQ(0u, next.kernels[3]);
}

TEST_F(NextWorkTest, LooksAtSoManyRecordsAndAtNoneThatIsNotWhole) {
  for (int i = 0; i < 100; ++i) Launch(1);
  EXPECT_EQ(64u, NextWorkIn(log_, functions_).launches);
  const size_t record = log_.size() / 100;
  const auto some = std::span(log_).first(2 * record - 1);
  EXPECT_EQ(1u, NextWorkIn(some, functions_).launches);
  log_[0] = std::byte{1};  // a size that cannot be
  EXPECT_EQ(0u, NextWorkIn(log_, functions_).launches);
}

}  // namespace
}  // namespace longwire::worker
