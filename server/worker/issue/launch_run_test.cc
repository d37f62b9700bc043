// Launches that stand one behind the other and are given to the driver in one go, from the stream's
// queue or from the log: as if each came alone.
#include <gtest/gtest.h>

#include <atomic>

#include "server/worker/testing/held_launches.h"

namespace longwire::worker::testing {
namespace {

class LaunchesInARow : public ::testing::TestWithParam<Place> {};

INSTANTIATE_TEST_SUITE_P(From, LaunchesInARow, BothPlaces(), PlaceName);

TEST_P(LaunchesInARow, EachLaunchHasItsParameters) {
  HeldLaunches held(GetParam());
  constexpr size_t kLaunches = 300;
  std::vector<std::vector<std::byte>> sent;
  uint64_t last = 0;
  for (size_t i = 0; i < kLaunches; ++i) {
    sent.push_back(Pattern(i * 37 % 5000));  // also more than all of a run may have together
    for (std::byte& byte : sent.back()) byte ^= std::byte(i);
    last = held.Launch(sent.back());
  }
  held.LetGo();
  held.session.ExpectProgress(kOne, last);
  EXPECT_TRUE(held.launched == sent);
}

TEST_P(LaunchesInARow, OneThatFailsIsToldAndTheOthersGo) {
  HeldLaunches held(GetParam());
  held.on_launch = [](size_t number) {
    return number == 7 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  };
  auto positions = held.LaunchMany(20);
  held.LetGo();
  DownRecord error = held.session.Expect(wire::DownKind::kError);
  EXPECT_EQ(positions[7], error.header.position);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, static_cast<CUresult>(error.header.code));
  held.session.ExpectProgress(kOne, positions.back());
  EXPECT_EQ(20u, held.launched.size());
}

TEST_P(LaunchesInARow, NothingGoesAfterAFault) {
  HeldLaunches held(GetParam());
  held.on_launch = [](size_t number) {
    return number == 7 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
  };
  auto positions = held.LaunchMany(20);
  held.LetGo();
  EXPECT_EQ(positions[7], held.session.Expect(wire::DownKind::kError).header.position);
  held.session.ExpectProgress(kOne, positions.back());
  EXPECT_EQ(8u, held.launched.size());
}

TEST_P(LaunchesInARow, AGateThatClosesMeanwhileHoldsTheRest) {
  HeldLaunches held(GetParam());
  gates::DeviceGate& gate = held.page->device(0);
  held.on_launch = [&](size_t number) {
    if (number == 7) gate.closed = 1;
    return CUDA_SUCCESS;
  };
  auto positions = held.LaunchMany(20);
  held.LetGo();
  held.session.Until([&] { return gate.held == 1; }, "the rest to be held");
  held.session.ExpectProgress(kOne, positions[7]);
  EXPECT_EQ(8u, held.launched.size());
  held.session.Until([&] { return gate.running_since == 0; }, "the device to stand still");
  EXPECT_EQ(1u, gate.busy);
  gate.closed = 0;
  held.page->RingWorker();
  held.session.ExpectProgress(kOne, positions.back());
  EXPECT_EQ(20u, held.launched.size());
}

// Of what is still in the log the client does not ask for a place.
TEST(LaunchesFromTheQueue, EndsWhereAMarkerIsWanted) {
  HeldLaunches held(Place::kQueue);
  std::atomic<bool> seen{false};
  held.on_launch = [&](size_t number) {
    if (number == 12) held.session.Until([&] { return seen.load(); }, "the earlier progress");
    return CUDA_SUCCESS;
  };
  auto positions = held.LaunchMany(20);
  calls::lwStreamWanted want;
  want.stream = kOne;
  want.position = positions[4];
  held.session.Send(want);
  held.LetGo();
  held.session.ExpectProgress(kOne, positions[4]);
  seen = true;
  held.session.ExpectProgress(kOne, positions.back());
}

TEST_P(LaunchesInARow, EndsWhereTheLegacyStreamHasItsTurn) {
  HeldLaunches held(GetParam());
  held.LaunchMany(3);
  std::byte legacy{99};
  held.Launch({&legacy, 1}, kLegacy);
  auto positions = held.LaunchMany(3);
  held.LetGo();
  held.session.ExpectProgress(kOne, positions.back());
  std::vector<int> order;
  for (auto& parameters : held.launched) order.push_back(static_cast<int>(parameters.at(0)));
  EXPECT_EQ((std::vector<int>{0, 1, 2, 99, 0, 1, 2}), order);
}

TEST_P(LaunchesInARow, OtherCallsKeepTheirPlaces) {
  HeldLaunches held(GetParam());
  constexpr int kRounds = 100;
  uint64_t last = 0;
  for (int round = 0; round < kRounds; ++round) {
    held.LaunchMany(round % 5);
    calls::lwHostFunction host;
    host.ticket = kTicket + 1 + round;
    last = held.session.Send(host, kOne);
  }
  held.LetGo();
  size_t expected = 0;
  for (int round = 0; round < kRounds; ++round) {
    expected += round % 5;
    DownRecord asked = held.session.Expect(wire::DownKind::kHostFunction);
    EXPECT_EQ(asked.Number(), uint64_t(kTicket + 1 + round));
    EXPECT_EQ(expected, held.launched.size());
    calls::lwHostFunctionDone finished;
    finished.ticket = kTicket + 1 + round;
    held.session.Send(finished);
  }
  held.session.ExpectProgress(kOne, last);
}

TEST(LaunchesFromTheLog, TakesNoPlaceInTheQueue) {
  HeldLaunches held(Place::kLog);
  std::atomic<int> waited{0};
  held.on_launch = [&](size_t) {
    waited += held.session.session->issuer().anything_waits() ? 1 : 0;
    return CUDA_SUCCESS;
  };
  auto positions = held.LaunchMany(200);
  held.LetGo();
  held.session.ExpectProgress(kOne, positions.back());
  EXPECT_EQ(200u, held.launched.size());
  EXPECT_EQ(0, waited);
}

}  // namespace
}  // namespace longwire::worker::testing
