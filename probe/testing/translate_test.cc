// What probes compute on the device is what C says.
#include <numeric>

#include "probe/testing/objects/arithmetic.h"
#include "probe/testing/support.h"

namespace longwire::probe::testing {
namespace {

constexpr char kNothing[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry nothing()\n{\nret;\n}\n";
constexpr uint64_t kBlocks = 100;

TEST(TranslateTest, OperationsGiveWhatTheyGiveInC) {
  const auto device = Probed(kNothing, Object("arithmetic"));
  EXPECT_RUNS(device.Run("nothing", {kBlocks}, {1}));
  const std::vector<uint64_t> results = Values(device, "results");
  for (uint64_t b = 0; b < kBlocks; ++b) {
    const uint64_t a = b * 3 + 1;
    const auto check = [&](uint64_t number, uint64_t value) {
      EXPECT_EQ(results[b * OPERATION_COUNT + number], value)
          << "operation " << number << " of " << a << " and " << b;
    };
#define SET(number, value) check(number, value);
    OPERATIONS(a, b)
#undef SET
  }
}

TEST(TranslateTest, TheStackHoldsBytesAndWords) {
  const auto device = Probed(kNothing, Object("arithmetic"));
  EXPECT_RUNS(device.Run("nothing", {kBlocks}, {1}));
  const std::vector<uint64_t> stacked = Values(device, "stacked");
  for (uint64_t block = 0; block < kBlocks; ++block) {
    const auto byte = static_cast<uint8_t>(block * 5);
    const auto half = static_cast<uint16_t>(block * 1000);
    const auto word = static_cast<uint32_t>(block * 0x1234567);
    EXPECT_EQ(stacked[block], (0x1122334455667788 + block) ^ uint64_t{byte} << 8 ^
                                  uint64_t{half} << 20 ^ uint64_t{word} << 30)
        << block;
  }
}

TEST(TranslateTest, FieldsCountThroughTheGrid) {
  const auto device = Probed(kNothing, Object("arithmetic"));
  EXPECT_RUNS(device.Run("nothing", {4, 3, 2}, {1}));
  const std::vector<uint64_t> fields = Values(device, "fields");
  for (uint64_t block = 0; block < 24; ++block) {
    EXPECT_EQ(fields[block], block + (block << 32) + (block << 16));
  }
  const auto larger = Probed(kNothing, Object("arithmetic"));
  EXPECT_RUNS(larger.Run("nothing", {5}, {40, 2, 1}));
  // Of three warps in a block one writes last: its elected thread and its number fit together.
  for (uint64_t block = 0; block < 5; ++block) {
    const uint64_t field = Values(larger, "fields")[block];
    const uint64_t thread = field >> 32, warp = field >> 16 & 0xffff;
    EXPECT_EQ(field & 0xff, block);
    EXPECT_EQ(warp, block * 3 + (thread - block * 80) / 32);
    EXPECT_EQ((thread - block * 80) % 32, 0u);
  }
}

}  // namespace
}  // namespace longwire::probe::testing
