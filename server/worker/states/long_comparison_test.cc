// States of more memory than is compared within a turn of the device.
#include <cstdlib>

#include "server/worker/states/compared_look.h"
#include "server/worker/states/states_fixture.h"

namespace longwire::worker::testing {
namespace {

// What the software device runs before another context has its turn (engine/run/turns.cc): less
// than a comparison of this memory takes. Set before the device is loaded.
const int kShortTurns = setenv("LONGWIRE_SOFTGPU_TURN", "50000", 1);
constexpr size_t kBytes = size_t{6} << 20;

class LongComparisonTest : public StatesFixture {
 protected:
  LongComparisonTest() : StatesFixture(kBytes) { ComparedLook::bytes_in_a_turn = kBytes / 4; }
};

TEST_F(LongComparisonTest, NothingComesInPart) {
  ASSERT_EQ(kShortTurns, 0);
  LaunchKernel("count_in_pairs");
  for (int look = 0; look < 6; ++look) {
    Look();
    Received();
    ASSERT_LE(host_[0] - host_.back(), 1u) << "the first word is written first";
  }
  session_->ExpectProgress(kMirrors, PushWord(1, 1, 0));
  session_->ExpectProgress(kOne, launched_);
  Look();
  EXPECT_NE(Received(), 0u);
  EXPECT_EQ(host_[0], host_.back());
}

}  // namespace
}  // namespace longwire::worker::testing
