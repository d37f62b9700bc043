// Launches that wait until all of them are there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {

inline constexpr uint64_t kOne = 11, kTwo = 12, kLegacy = 13, kTicket = 5;

// Where launches wait until all have arrived: in the stream's queue, behind a host function, or in
// the log, while the log thread issues an earlier launch.
enum class Place { kQueue, kLog };

// For tests that are run with both.
inline auto BothPlaces() { return ::testing::Values(Place::kQueue, Place::kLog); }
inline std::string PlaceName(const ::testing::TestParamInfo<Place>& info) {
  return info.param == Place::kQueue ? "Queue" : "Log";
}

struct HeldLaunches {
  const Place place;
  std::shared_ptr<gates::GatePage> page = gates::GatePage::Create(1);
  TestSession session{page};
  uint64_t function = 0;
  std::vector<std::vector<std::byte>> launched;  // what the driver saw
  std::function<CUresult(size_t number)> on_launch = [](size_t) { return CUDA_SUCCESS; };
  std::atomic<bool> held{true}, holds{false};

  explicit HeldLaunches(Place where) : place(where) {
    session.CreateStream(kOne, StreamKind::kBlocking);
    session.CreateStream(kTwo, StreamKind::kNonBlocking);
    session.CreateStream(kLegacy, StreamKind::kLegacy);
    function = session.LoadFunction();
    session.ExpectProgress(kOne, session.Launch(kOne, 0));  // it is loaded with the first launch
    session.driver.on_launch = [this](std::span<const std::byte> parameters) {
      if (place == Place::kLog && !holds.exchange(true)) {
        held.wait(true);
        return CUDA_SUCCESS;
      }
      launched.emplace_back(parameters.begin(), parameters.end());
      return on_launch(launched.size() - 1);
    };
    if (place == Place::kLog) {
      Launch({});
      session.Until([this] { return holds.load(); }, "a launch that holds the log thread");
      return;
    }
    calls::lwHostFunction host;
    host.ticket = kTicket;
    session.Send(host, kOne);
    session.Expect(wire::DownKind::kHostFunction);
  }
  ~HeldLaunches() { LetGo(); }
  uint64_t Launch(std::span<const std::byte> parameters, uint64_t stream = kOne) {
    calls::lwLaunch launch;
    launch.function = function;
    launch.grid_x = launch.grid_y = launch.grid_z = 1;
    launch.block_x = launch.block_y = launch.block_z = 1;
    launch.parameters = parameters;
    return session.Send(launch, stream);
  }
  // Of one byte each, their number. Returns their positions.
  std::vector<uint64_t> LaunchMany(size_t count) {
    std::vector<uint64_t> positions;
    for (size_t i = 0; i < count; ++i) {
      std::byte number = std::byte(i);
      positions.push_back(Launch({&number, 1}));
    }
    return positions;
  }
  void LetGo() {
    if (!held.exchange(false)) return;
    held.notify_all();
    if (place == Place::kLog) return;
    calls::lwHostFunctionDone done;
    done.ticket = kTicket;
    session.Send(done);
  }
};

}  // namespace longwire::worker::testing
