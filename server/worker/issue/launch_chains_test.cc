// Launches that come again and again go as one graph, and nobody can tell but by the clock: each
// once, in order, with its own parameters and sizes.
#include "server/worker/issue/launch_chains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "server/worker/testing/held_launches.h"

namespace longwire::worker::testing {
namespace {

constexpr int kOften = 10;  // so often something has come before it is expected to go as one

// A launch of a test: which kernel, how large, with what value.
struct Wanted {
  uint64_t function = 1;
  uint32_t grid = 1;
  uint64_t value = 0;
  bool operator==(const Wanted&) const = default;
};

class Chains : public ::testing::Test {
 protected:
  Chains() {
    stream_.id = 7;
    stream_.context = std::make_shared<Context>();
    stream_.handle = driver_.NewStream();
    driver_.on_launch = [this](std::span<const std::byte> parameters) {
      std::memcpy(&launched_.emplace_back(), parameters.data(), sizeof(Wanted));
      return CUDA_SUCCESS;
    };
  }

  std::vector<Wanted> Row(size_t count, uint32_t grid = 1) {
    std::vector<Wanted> row(count);
    for (size_t i = 0; i < count; ++i) row[i] = {1 + i % 5, grid, ++value_};
    return row;
  }
  // Gives them as a run does. Returns how many went in chains.
  size_t Give(std::vector<Wanted> row, uint64_t place = 0) {
    std::vector<PlainLaunch> launches;
    for (Wanted& wanted : row) {
      launches.push_back({.shape = {.function = reinterpret_cast<CUfunction>(wanted.function),
                                    .grid = {wanted.grid, 1, 1},
                                    .block = {1, 1, 1},
                                    .parameter_bytes = sizeof(Wanted)},
                          .parameters = reinterpret_cast<std::byte*>(&wanted)});
    }
    launched_.clear();
    size_t chained = 0;
    for (size_t i = 0; i < launches.size();) {
      size_t alone = 0;
      size_t together = 0;
      {
        base::MutexLock lock(chains_.mutex());
        together = chains_.Launch(stream_, place + i, std::span(launches).subspan(i), &alone);
      }
      chained += together;
      i += together;
      for (; alone != 0; --alone) driver_.on_launch(Bytes(row[i++]));
    }
    EXPECT_EQ(launched_, row);
    return chained;
  }
  static std::span<const std::byte> Bytes(const Wanted& wanted) {
    return std::as_bytes(std::span(&wanted, 1));
  }
  size_t GiveOften(size_t count, uint64_t place = 0) {
    size_t chained = 0;
    for (int i = 0; i < kOften; ++i) chained = Give(Row(count), place);
    return chained;
  }

  FakeDriver driver_;
  DriverTable table_ = driver_.table();
  LaunchChains chains_{table_};
  Stream stream_;
  std::vector<Wanted> launched_;
  uint64_t value_ = 0;
};

TEST_F(Chains, WhatComesForTheFirstTimeGoesOneByOne) {
  EXPECT_EQ(Give(Row(64)), 0u);
  EXPECT_EQ(driver_.instantiated, 0);
}

TEST_F(Chains, WhatCameOftenGoesAsOne) {
  EXPECT_EQ(GiveOften(64), 64u);
  EXPECT_EQ(driver_.instantiated, 4);
  EXPECT_EQ(Give(Row(64)), 64u);
  EXPECT_EQ(driver_.instantiated, 4);  // once for all
}

TEST_F(Chains, ARestGoesInSmallerOnes) { EXPECT_EQ(GiveOften(16 + 8 + 4 + 3), 28u); }

TEST_F(Chains, ARowThatBeganBeforeIsCutInTheSamePlaces) {
  GiveOften(64);
  auto row = Row(64);
  std::vector<Wanted> end(row.begin() + 13, row.end());
  // Three alone, and the rest of 16 that never came so.
  EXPECT_EQ(Give(end, 13), 48u);
  EXPECT_EQ(driver_.instantiated, 4);
}

TEST_F(Chains, OnlyParametersThatChangedAreSet) {
  auto row = Row(16);
  for (int i = 0; i < kOften; ++i) Give(row);
  EXPECT_EQ(driver_.nodes_set, 0);
  row[5].value = row[9].value = 12345;
  EXPECT_EQ(Give(row), 16u);
  EXPECT_EQ(driver_.nodes_set, 2);
  EXPECT_EQ(Give(row), 16u);
  EXPECT_EQ(driver_.nodes_set, 2);
}

TEST_F(Chains, OtherSizesAreAnotherChain) {
  GiveOften(16);
  EXPECT_EQ(Give(Row(16, 2)), 0u);
  for (int i = 0; i < kOften; ++i) Give(Row(16, 2));
  EXPECT_EQ(Give(Row(16, 2)), 16u);
  EXPECT_EQ(Give(Row(16, 1)), 16u);
  EXPECT_EQ(driver_.instantiated, 2);
}

TEST_F(Chains, OtherStreamsHaveTheirOwn) {
  GiveOften(16);
  stream_.id = 8;
  EXPECT_EQ(Give(Row(16)), 0u);
  EXPECT_EQ(GiveOften(16), 16u);
  EXPECT_EQ(driver_.graphs_alive, 2);
  chains_.Forget(stream_);
  EXPECT_EQ(driver_.graphs_alive, 1);
  EXPECT_EQ(Give(Row(16)), 0u);
  stream_.id = 7;
  EXPECT_EQ(Give(Row(16)), 16u);
}

TEST_F(Chains, WhatTheDriverDoesNotTakeGoesOneByOne) {
  for (auto* refused :
       {&driver_.instantiate_result, &driver_.set_result, &driver_.graph_launch_result}) {
    *refused = CUDA_ERROR_NOT_SUPPORTED;
    EXPECT_EQ(GiveOften(16), 0u);
    *refused = 0;
    EXPECT_EQ(driver_.graphs_alive, 0);
    int instantiated = driver_.instantiated;
    EXPECT_EQ(GiveOften(16), 0u);  // and it is not asked again
    EXPECT_EQ(driver_.instantiated, instantiated);
    chains_.ForgetAll();
  }
  EXPECT_EQ(GiveOften(16), 16u);
}

TEST_F(Chains, AChangeOfHowKernelsRunMakesThemAnew) {
  GiveOften(16);
  { LaunchChains::Change none(chains_, CallId::lwLaunch); }
  EXPECT_EQ(driver_.graphs_alive, 1);
  { LaunchChains::Change limit(chains_, CallId::cuCtxSetLimit); }
  EXPECT_EQ(driver_.graphs_alive, 0);
  EXPECT_EQ(GiveOften(16), 16u);
  { LaunchChains::Change attribute(chains_, CallId::cuStreamSetAttribute); }
  EXPECT_EQ(driver_.graphs_alive, 0);
  EXPECT_EQ(GiveOften(16), 0u);
}

TEST_F(Chains, NoneIsMadeWhileAChangeIsUnderWay) {
  {
    LaunchChains::Change limit(chains_, CallId::cuCtxSetLimit);
    EXPECT_EQ(GiveOften(16), 0u);
    EXPECT_EQ(driver_.instantiated, 0);
  }
  EXPECT_EQ(GiveOften(16), 16u);
}

TEST_F(Chains, PartsOfADeviceHaveNone) {
  stream_.context->home = std::make_shared<Context>();
  EXPECT_EQ(GiveOften(16), 0u);
}

TEST_F(Chains, TheirNumberHasAnEnd) {
  auto round = [this](uint32_t from) {
    for (uint32_t grid = from; grid < from + 200; ++grid) Give(Row(4, grid));
  };
  for (int i = 0; i < kOften; ++i) round(1);
  EXPECT_EQ(driver_.graphs_alive, 128);
  // Those that were not used for long go.
  for (int i = 0; i < 400; ++i) round(1001);
  EXPECT_EQ(driver_.graphs_alive, 128);
  EXPECT_EQ(Give(Row(4, 1001)), 4u);
  EXPECT_EQ(Give(Row(4, 1)), 0u);
}

TEST_F(Chains, WhatNeverComesAgainIsForgotten) {
  GiveOften(16);
  for (uint32_t grid = 2; grid < 50'000; ++grid) Give(Row(16, grid));
  EXPECT_EQ(Give(Row(16)), 16u);
  EXPECT_EQ(driver_.instantiated, 1);
}

// In a session.
void GiveRows(HeldLaunches& held, int rows, size_t launches) {
  for (int row = 0; row < rows; ++row) {
    held.LaunchMany(launches);
    calls::lwHostFunction host;  // a row ends here
    host.ticket = 100 + row;
    held.session.Send(host, kOne);
  }
  held.LetGo();
  for (int row = 0; row < rows; ++row) {
    held.session.Expect(wire::DownKind::kHostFunction);
    calls::lwHostFunctionDone done;
    done.ticket = 100 + row;
    held.session.Send(done);
  }
  held.session.ExpectProgress(kOne, held.Launch({}));
}

class ChainsInASession : public ::testing::TestWithParam<Place> {};

INSTANTIATE_TEST_SUITE_P(From, ChainsInASession, BothPlaces(), PlaceName);

TEST_P(ChainsInASession, EachLaunchGoesOnce) {
  HeldLaunches held(GetParam());
  constexpr int kRows = 20;
  GiveRows(held, kRows, 20);
  ASSERT_EQ(held.launched.size(), kRows * 20u + 1);
  for (size_t i = 0; i < kRows * 20; ++i) {
    EXPECT_EQ(held.launched[i], std::vector{std::byte(i % 20)}) << i;
  }
  EXPECT_GE(held.session.driver.graphs_launched, 2 * (kRows - kOften));
}

TEST_P(ChainsInASession, AGateThatClosesMeanwhileHoldsTheRest) {
  HeldLaunches held(GetParam());
  gates::DeviceGate& gate = held.page->device(0);
  // One kernel 400 times: its chain is there long before the end.
  held.on_launch = [&](size_t number) {
    if (number == 300) gate.closed = 1;
    return CUDA_SUCCESS;
  };
  auto positions = held.LaunchMany(400);
  held.LetGo();
  held.session.Until([&] { return gate.held == 1; }, "the rest to be held");
  held.session.Until([&] { return gate.running_since == 0; }, "the device to stand still");
  EXPECT_GT(held.launched.size(), 300u);
  EXPECT_LE(held.launched.size(), 316u);  // what is in the chain has gone
  gate.closed = 0;
  held.page->RingWorker();
  held.session.ExpectProgress(kOne, positions.back());
  EXPECT_EQ(400u, held.launched.size());
}

TEST_P(ChainsInASession, StreamsThatTakeTurnsHaveThem) {
  HeldLaunches held(GetParam());
  constexpr size_t kEach = 600;
  uint64_t last[2] = {};
  for (size_t i = 0; i < kEach; ++i) {
    std::byte of_one[] = {std::byte(0), std::byte(i)}, of_another[] = {std::byte(1), std::byte(i)};
    last[0] = held.Launch(of_one);
    last[1] = held.Launch(of_another, kTwo);
  }
  held.LetGo();
  held.session.ExpectProgress(kOne, last[0]);
  held.session.ExpectProgress(kTwo, last[1]);
  size_t seen[2] = {};
  for (auto& launch : held.launched) {
    size_t stream = static_cast<size_t>(launch[0]);
    EXPECT_EQ(launch[1], std::byte(seen[stream]++));
  }
  EXPECT_EQ(seen[0], kEach);
  EXPECT_EQ(seen[1], kEach);
  EXPECT_GT(held.session.driver.graphs_launched, 20);
}

TEST_P(ChainsInASession, GoBeforeTheirCode) {
  HeldLaunches held(GetParam());
  GiveRows(held, 20, 20);
  EXPECT_GT(held.session.driver.graphs_alive, 0);
  calls::lwModuleUnload unload;
  unload.library = TestSession::kLibrary;
  held.session.Send(unload);
  FakeDriver& driver = held.session.driver;
  held.session.Until([&] { return driver.IndexOf("unload") >= 0; }, "the module's unload");
  EXPECT_EQ(driver.graphs_alive, 0);
  EXPECT_LT(driver.IndexOf("destroy graph"), driver.IndexOf("unload"));
}

}  // namespace
}  // namespace longwire::worker::testing
