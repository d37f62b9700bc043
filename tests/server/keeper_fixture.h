// The keeper's loop over a fake device: the test plays the warden and the workers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/keeper/fake_device.h"
#include "server/keeper/keeper.h"

namespace longwire::keeper {
using std::chrono::milliseconds;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;

class KeeperTest : public testing::Test {
 protected:
  explicit KeeperTest(uint64_t device_bytes = 1024 * kMiB) : device(device_bytes, 2 * kMiB) {}

  void SetUp() override { StartKeeper(true); }

  void StartKeeper(bool scrub, bool drain = true) {
    wire::Descriptor end;
    ASSERT_TRUE(wire::LocalPair(&control, &end));
    keeper = std::make_unique<Keeper>(
        device, PoolOptions{.reserve = 64 * kMiB, .scrub = scrub, .drain = drain}, std::move(end));
    thread = std::thread([this] { keeper->Run(); });
  }

  void TearDown() override {
    control.Reset();
    thread.join();
    keeper.reset();
    EXPECT_EQ(device.count(), 0u);
  }

  // A worker without a process of its own: gone when its socket closes.
  wire::Descriptor Attach(uint64_t worker, int process = -1) {
    wire::Descriptor ours, keepers;
    EXPECT_TRUE(wire::LocalPair(&ours, &keepers));
    std::vector<int> files = {keepers.get()};
    if (process >= 0) files.push_back(process);
    EXPECT_TRUE(wire::SendMessage(control.get(), message::Pack(keeper::Attach{worker, {}}), files));
    return ours;
  }

  template <class M>
  static void Say(const wire::Descriptor& socket, const M& message) {
    ASSERT_TRUE(wire::SendMessage(socket.get(), message::Pack(message)));
  }

  struct Answer {
    std::vector<GrantedChunk> chunks;
    std::vector<wire::Descriptor> files;
    Refuse refuse;
    bool answered = false;
  };

  static Answer Hear(const wire::Descriptor& socket, milliseconds timeout = milliseconds(5000)) {
    Answer answer;
    while (true) {
      auto packet = wire::ReceiveMessage(socket.get(), timeout);
      if (!packet) return answer;
      Grant grant;
      if (message::Unpack(packet->bytes, &grant) != wire::WireResult::kOk) {
        answer.answered = message::Unpack(packet->bytes, &answer.refuse) == wire::WireResult::kOk;
        return answer;
      }
      EXPECT_EQ(grant.chunks.size(), packet->descriptors.size());
      answer.chunks.insert(answer.chunks.end(), grant.chunks.begin(), grant.chunks.end());
      for (auto& file : packet->descriptors) answer.files.push_back(std::move(file));
      answer.answered = !grant.more;
      if (!grant.more) return answer;
    }
  }

  static Answer Ask(const wire::Descriptor& socket, std::vector<uint64_t> sizes) {
    Say(socket, Lease{7, std::move(sizes)});
    return Hear(socket);
  }

  static char Content(const wire::Descriptor& file) {
    char content = '?';
    EXPECT_EQ(pread(file.get(), &content, 1, 0), 1);
    return content;
  }

  // The state that the warden hears last, when it fits `wanted` or after 5 s.
  template <class Wanted>
  KeeperState State(Wanted wanted) {
    KeeperState state;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < end) {
      auto packet = wire::ReceiveMessage(control.get(), milliseconds(100));
      if (!packet) continue;
      EXPECT_EQ(message::Unpack(packet->bytes, &state), wire::WireResult::kOk);
      if (wanted(state)) break;
    }
    return state;
  }

  FakeDevice device;
  wire::Descriptor control;
  std::unique_ptr<Keeper> keeper;
  std::thread thread;
};

// A keeper that charges what it lends to tenants.
class ChargingKeeperTest : public KeeperTest {
 protected:
  void StartCharging(uint32_t tenant, uint64_t limit) {
    ledger_ = TenantLedger::Create();
    ASSERT_NE(ledger_, nullptr);
    ledger_->SetLimit(tenant, limit);
    quota_.emplace(*ledger_, 0, true);
    wire::Descriptor end;
    ASSERT_TRUE(wire::LocalPair(&control, &end));
    keeper = std::make_unique<Keeper>(device, PoolOptions{.reserve = 64 * kMiB, .quota = &*quota_},
                                      std::move(end));
    keeper->SetWardenVersion(kChargesSince);
    thread = std::thread([this] { keeper->Run(); });
  }

  wire::Descriptor AttachAs(uint64_t worker, uint32_t tenant) {
    wire::Descriptor socket = Attach(worker);
    Say(control, Assign{worker, tenant, {}});
    return socket;
  }

  std::unique_ptr<TenantLedger> ledger_;
  std::optional<Quota> quota_;
};

}  // namespace longwire::keeper
