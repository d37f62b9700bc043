// Sessions from a program's socket through link, gRPC and daemon to a worker and back, all in this
// process; the warden and its workers are the test's own (fake_warden.h).
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "link/local_socket.h"
#include "link/transport/grpc_setup.h"
#include "server/config/config.h"
#include "server/daemon/accept_loop.h"
#include "server/daemon/local_socket.h"
#include "tests/transport/fake_warden.h"

namespace longwire::daemon {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A port that is free now.
inline uint16_t FreePort() {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0) {
    ADD_FAILURE() << "no socket";
    return 0;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  close(listener);
  return ntohs(address.sin_port);
}

inline bool Eventually(const std::function<bool()>& done,
                       milliseconds patience = milliseconds(20000)) {
  auto deadline = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

// A program's ends of a pair of logs.
struct Logs {
  std::unique_ptr<wire::RingProducer> up;
  std::unique_ptr<wire::RingConsumer> down;

  bool Map(wire::Descriptor& up_ring, wire::Descriptor& down_ring) {
    auto up_memory = wire::RingMemory::Map(up_ring.Release());
    auto down_memory = wire::RingMemory::Map(down_ring.Release());
    if (up_memory == nullptr || down_memory == nullptr) return false;
    up = std::make_unique<wire::RingProducer>(up_memory);
    down = std::make_unique<wire::RingConsumer>(down_memory);
    return true;
  }

  // One message there and back; false when it does not come.
  bool Echo(const std::string& text) {
    if (!up->WaitForSpace(text.size(), Clock::now() + seconds(5))) return false;
    std::memcpy(up->Reserve(text.size()), text.data(), text.size());
    up->Commit(text.size());
    std::string back;
    while (back.size() < text.size()) {
      if (!down->Wait(std::chrono::microseconds(50), Clock::now() + seconds(5))) return false;
      auto bytes = down->Available();
      back.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      down->Advance(bytes.size());
      down->Release(down->cursor());
    }
    return back == text;
  }
};

// A program: connects, opens a session, uses the rings.
struct Program : Logs {
  wire::Descriptor socket;
  wire::OpenReply reply;
  wire::RingMemory* down_memory = nullptr;
  uint32_t wanted_lanes = 0;
  std::vector<Logs> lanes;

  bool Open(const std::string& door, wire::VersionRange versions = wire::SpokenVersions()) {
    wire::OpenRequest request;
    request.versions = versions;
    request.pid = static_cast<uint32_t>(getpid());
    request.host = "here";
    request.program = "session_test";
    request.lanes = wanted_lanes;
    wire::Writer writer;
    request.Encode(writer);
    return Send(door, writer.span());
  }

  // An encoded request, of whatever version.
  bool Send(const std::string& door, std::span<const std::byte> request) {
    socket = wire::ConnectLocal(door);
    if (!socket.valid() || !wire::SendMessage(socket.get(), request)) return false;
    auto message = wire::ReceiveMessage(socket.get(), seconds(8));
    if (!message) return false;
    wire::Reader reader(message->bytes);
    if (reply.Decode(reader) != wire::WireResult::kOk) return false;
    auto& rings = message->descriptors;
    if (reply.code != 0 || rings.size() != 2 * (wanted_lanes + 1)) return false;
    if (!Map(rings[0], rings[1])) return false;
    down_memory = &down->memory();
    lanes.resize(wanted_lanes);
    for (uint32_t i = 0; i < wanted_lanes; ++i) {
      if (!lanes[i].Map(rings[2 * i + 2], rings[2 * i + 3])) return false;
    }
    return true;
  }

  // What the other end says on the socket before it closes; empty if nothing comes.
  std::string LastWords() {
    auto words = wire::ReceiveMessage(socket.get(), seconds(2));
    if (!words) return "";
    return {reinterpret_cast<const char*>(words->bytes.data()), words->bytes.size()};
  }
};

class SessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { transport::PrepareProcess(); }

  void SetUp() override {
    char folder[] = "/tmp/longwire-test-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    if (config_.listen_size() == 0) {
      config_.add_listen("127.0.0.1:" + std::to_string(FreePort()));
    }
    config::FillDefaults(folder_, &config_);
    transport::SetLogLevel(transport::LogLevel::kError);
    warden_ = std::make_unique<FakeWarden>(config_.warden());
    StartDaemon();
    StartLink();
  }

  void TearDown() override {
    StopDaemon();
    warden_.reset();
    if (link_thread_.joinable()) link_thread_.join();
    std::string command = "rm -rf " + folder_;
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  void StartDaemon() {
    std::string sentence;
    live_ = std::make_unique<config::LiveConfig>(config_);
    table_ = std::make_unique<SessionTable>(*live_);
    accept_ = std::make_unique<AcceptLoop>(*table_);
    door_ = std::make_unique<LocalSocket>(*table_);
    ASSERT_TRUE(accept_->Start(&sentence)) << sentence;
    ASSERT_TRUE(door_->Start(config_.local_socket(), &sentence)) << sentence;
    ASSERT_TRUE(table_->Start(&sentence)) << sentence;
  }
  void StopDaemon() {
    if (accept_) accept_->Stop();
    door_.reset();
    accept_.reset();
    table_.reset();
    live_.reset();
  }

  void StartLink() {
    if (options_.servers.empty()) options_.servers = config::ListenAddresses(config_);
    options_.socket = folder_ + "/link";
    if (options_.idle == link::Options().idle) options_.idle = milliseconds(50);
    link_ = std::make_unique<link::LocalSocket>(options_);
    ASSERT_EQ(link_->Open(), link::LocalSocket::Opened::kOpen);
    link_thread_ = std::thread([this] { link_->Serve(); });
  }

  bool NothingLeft() {
    return Eventually([&] { return table_->List().empty() && warden_->living() == 0; });
  }

  std::string folder_;
  config::Config config_;  // of the next StartDaemon
  link::Options options_;
  std::unique_ptr<FakeWarden> warden_;
  std::unique_ptr<config::LiveConfig> live_;
  std::unique_ptr<SessionTable> table_;
  std::unique_ptr<AcceptLoop> accept_;
  std::unique_ptr<LocalSocket> door_;
  std::unique_ptr<link::LocalSocket> link_;
  std::thread link_thread_;
};

}  // namespace longwire::daemon
