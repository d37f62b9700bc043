// A warden with a stand-in worker and a keeper over a fake device: the test is the daemon.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/poll_set.h"
#include "server/warden/warden.h"

namespace longwire::warden {

using std::chrono::milliseconds;

struct Started {
  WorkerStarted message;
  std::vector<wire::Descriptor> files;
};

class WardenTest : public testing::Test {
 protected:
  void SetUp() override {
    options.socket = testing::TempDir() + "/warden-" + std::to_string(getpid()) + ".sock";
    options.driver = "fake";
    options.devices = {0, 1};
    options.warm_workers = 0;
    options.worker_program = STAND_IN_WORKER;
    options.keeper_program = STAND_IN_KEEPER;
  }

  void Start() {
    std::atomic<bool> ready = false;
    // The children end with the thread that started them.
    thread = std::thread([&] {
      Warden warden(options);
      std::string sentence;
      EXPECT_EQ(warden.OpenDevices(&sentence), 0) << sentence;
      EXPECT_TRUE(warden.Listen(&sentence, std::move(given))) << sentence;
      ready = true;
      while (!stop && warden.RunOnce(milliseconds(10))) {
      }
      ended = true;
    });
    while (!ready) usleep(1000);
    daemon = wire::ConnectLocal(options.socket);
    ASSERT_TRUE(daemon.valid());
  }

  void TearDown() override {
    stop = true;
    if (thread.joinable()) thread.join();
    unlink(options.socket.c_str());
  }

  template <class M>
  void Say(const M& message) {
    ASSERT_TRUE(wire::SendMessage(daemon.get(), message::Pack(message)));
  }

  template <class M>
  bool Hear(M* message, std::vector<wire::Descriptor>* files = nullptr) {
    auto packet = wire::ReceiveMessage(daemon.get(), milliseconds(5000));
    if (!packet || message::Unpack(packet->bytes, message) != wire::WireResult::kOk) return false;
    if (files != nullptr) *files = std::move(packet->descriptors);
    return true;
  }

  Started StartSession(uint64_t session, std::vector<std::string> environment = {},
                       std::vector<int32_t> devices = {0}, const std::string& tenant = "") {
    Say(StartWorker{
        session + 1000, session, "", std::move(devices), std::move(environment), true, tenant, {}});
    Started started;
    EXPECT_TRUE(Hear(&started.message, &started.files));
    EXPECT_EQ(started.message.request, session + 1000);
    return started;
  }

  static std::string Command(const Started& worker, const std::string& command) {
    int control = worker.files[kControlSocket].get();
    if (!wire::SendMessage(control, std::as_bytes(std::span(command)))) return "send failed";
    auto answer = wire::ReceiveMessage(control, milliseconds(5000));
    if (!answer) return "no answer";
    return {reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size()};
  }

  // Of those that are ready on a device.
  size_t WarmWorkers(int32_t device) {
    return std::ranges::count_if(GetStatsNow().sessions, [&](const SessionStats& session) {
      return session.session == 0 && session.device == device;
    });
  }

  // Looks until it is so, for at most 10 s.
  static bool Eventually(const std::function<bool()>& done) {
    for (int i = 0; i < 1000; ++i) {
      if (done()) return true;
      usleep(10'000);
    }
    return false;
  }

  static bool Dead(const Started& worker) {
    return base::PollOne(worker.files[kPidfd].get(), POLLIN, std::chrono::seconds(5)) != 0;
  }

  Stats GetStatsNow() {
    Say(GetStats{1});
    Stats stats;
    EXPECT_TRUE(Hear(&stats));
    return stats;
  }

  Options options;
  wire::Descriptor given;  // the socket that a service manager opened
  std::thread thread;
  std::atomic<bool> stop = false;
  std::atomic<bool> ended = false;
  wire::Descriptor daemon;
};

}  // namespace longwire::warden
