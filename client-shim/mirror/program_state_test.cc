#include "client-shim/mirror/program_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "client-shim/mirror/mirror_table.h"
#include "client-shim/testing/mirrors_fixture.h"
#include "wire/live/mirror_state.h"

namespace longwire::shim {
namespace {

using testing::kDevice;
using testing::kPage;
using Taken = ProgramState::Taken;

class ProgramStateTest : public testing::MirrorsTest {
 protected:
  void SetUp() override {
    MirrorsTest::SetUp();
    Add({address(), kDevice, 4 * kPage});
    parts_ = {{mirrors_[0], 0, 4 * kPage}};
  }
  volatile uint64_t& Word(uint64_t at) { return *reinterpret_cast<uint64_t*>(memory_ + at); }
  uint64_t Shadow(uint64_t at) const {
    uint64_t word = 0;
    std::memcpy(&word, mirrors_[0]->shadow + at, 8);
    return word;
  }

  std::vector<MirrorPart> parts_;
  ProgramState state_;
};

TEST_F(ProgramStateTest, TheShadowsChangeWhenItIsSent) {
  EXPECT_EQ(state_.Take(parts_), Taken::kSame);
  Word(8) = 1;
  Word(2 * kPage) = 2;
  ASSERT_EQ(state_.Take(parts_), Taken::kState);
  EXPECT_EQ(Shadow(8), 0u);
  ASSERT_EQ(state_.deltas().size(), 1u);
  state_.Commit();
  EXPECT_EQ(Shadow(8), 1u);
  EXPECT_EQ(Shadow(2 * kPage), 2u);
  EXPECT_EQ(state_.Take(parts_), Taken::kSame);
}

TEST_F(ProgramStateTest, MoreThanAStateMayHaveIsNone) {
  constexpr uint64_t kBytes = wire::kStateBytes;
  char* many = MapPages(kBytes / kPage);
  Add({reinterpret_cast<uint64_t>(many), 2 * kDevice, kBytes});
  const MirrorPart part{mirrors_[1], 0, kBytes};
  std::memset(many, 'x', kBytes);
  EXPECT_EQ(state_.Take({&part, 1}), Taken::kNotNow);
  std::memset(many, 0, kBytes / 2);
  ASSERT_EQ(state_.Take({&part, 1}), Taken::kState);
  uint64_t bytes = 0;
  for (const StateDelta& one : state_.deltas()) bytes += one.delta.size();
  EXPECT_GT(bytes, kBytes / 2);
  EXPECT_LE(bytes, wire::kStateBytes);
  Remove(1);
  munmap(many, kBytes);
}

// The writer rests now and then, so that copies may be the same.
TEST_F(ProgramStateTest, EveryStateIsInOrder) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; ++round) {
      Word(8) = round;  // is copied before the flag
      for (uint64_t page = 1; page < 3; ++page) Word(page * kPage) = round;
      Word(3 * kPage + 512) = round;
      if (round % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  int states = 0, wrong = 0;
  // On a busy host the writer may come late, and seldom in the midst of a copy.
  for (int i = 0; i < 100000 || (states < 1000 && i < 3000000); ++i) {
    if (state_.Take(parts_) != Taken::kState) continue;
    state_.Commit();
    ++states;
    wrong += Shadow(8) < Shadow(3 * kPage + 512);
  }
  stop = true;
  writer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(states, 10);
}

}  // namespace
}  // namespace longwire::shim
