// The keeper with memory of the host's to move to: the test plays the warden and the workers.
#pragma once

#include "tests/server/keeper_fixture.h"
#include "wire/guards.h"

namespace longwire::keeper {

inline constexpr uint64_t kHost = 1024 * kMiB;

class KeeperSwapTest : public KeeperTest {
 protected:
  void SetUp() override { StartSwapping({}); }

  void StartSwapping(const SwapTimes& times, uint64_t host = kHost) {
    wire::Descriptor end;
    ASSERT_TRUE(wire::LocalPair(&control, &end));
    PoolOptions options{.reserve = 64 * kMiB, .drain = false, .times = times};
    options.scrub = !wire::GuardIsOff("scrub");
    keeper = std::make_unique<Keeper>(device, options, std::move(end));
    thread = std::thread([this] { keeper->Run(); });
    Say(control, KeeperLimits{UINT64_MAX, UINT64_MAX, 0, host});
    State([&](const KeeperState& s) { return s.swap_host_memory == host; });
  }

  // The same with other figures.
  void StartAgain(const SwapTimes& times, uint64_t host) {
    control.Reset();
    thread.join();
    keeper.reset();
    StartSwapping(times, host);
  }

  // The keeper's request to the warden to end a worker.
  EndWorker Ended() {
    EndWorker end;
    for (int i = 0; i < 100; ++i) {
      auto packet = wire::ReceiveMessage(control.get(), milliseconds(100));
      if (packet && message::Unpack(packet->bytes, &end) == wire::WireResult::kOk) break;
    }
    return end;
  }

  // Told to say when it works.
  wire::Descriptor Enter(uint64_t worker) {
    wire::Descriptor socket = Attach(worker);
    EXPECT_TRUE(Next<SwapWatch>(socket).on);
    return socket;
  }

  template <class M>
  static M Next(const wire::Descriptor& socket, std::vector<wire::Descriptor>* files = nullptr) {
    M next;
    auto packet = wire::ReceiveMessage(socket.get(), milliseconds(5000));
    EXPECT_TRUE(packet && message::Unpack(packet->bytes, &next) == wire::WireResult::kOk)
        << (packet ? message::KindOf(packet->bytes) : 0);
    if (packet && files != nullptr) *files = std::move(packet->descriptors);
    return next;
  }

  static bool Quiet(const wire::Descriptor& socket) {
    return !wire::ReceiveMessage(socket.get(), milliseconds(60)).has_value();
  }

  static void LetGo(const wire::Descriptor& worker, const SwapOut& asked,
                    SwapAnswer answer = SwapAnswer::kLeft) {
    Say(worker, SwapLeft{asked.request, static_cast<uint32_t>(answer)});
  }

  static void Write(const wire::Descriptor& file, char content) {
    EXPECT_EQ(pwrite(file.get(), &content, 1, 0), 1);
  }

  // One that has this much, in chunks of 100 MiB with letters from `first` on.
  Answer Fill(const wire::Descriptor& worker, size_t chunks, char first) {
    Answer has = Ask(worker, std::vector<uint64_t>(chunks, 100 * kMiB));
    EXPECT_EQ(has.chunks.size(), chunks);
    for (auto& file : has.files) Write(file, first++);
    has.files.clear();
    return has;
  }

  uint64_t Bytes(const SwapOut& asked) { return asked.chunks.size() * 100 * kMiB; }

  KeeperState ExpectState(uint64_t leased, uint64_t swapped) {
    KeeperState state =
        State([&](const KeeperState& s) { return s.leased == leased && s.swapped == swapped; });
    EXPECT_EQ(state.leased, leased);
    EXPECT_EQ(state.swapped, swapped);
    return state;
  }
};

}  // namespace longwire::keeper
