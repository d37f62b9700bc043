// Three real members of etcd for a test, and a client of them.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "server/etcd/client.h"

namespace longwire::etcd_testing {

using namespace etcd;  // NOLINT: a test's
using Clock = std::chrono::steady_clock;

constexpr int kMembers = 3;

inline int FreePort() {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  close(socket);
  return ntohs(address.sin_port);
}

inline std::string Url(int port) { return "http://127.0.0.1:" + std::to_string(port); }

template <class Condition>
bool Within(int seconds, Condition condition) {
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class Cluster : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/longwire-etcd-XXXXXX";
    folder_ = mkdtemp(folder);
    std::string cluster;
    for (int i = 0; i < kMembers; ++i) {
      ports_[i] = FreePort();
      peers_[i] = FreePort();
      cluster += (i == 0 ? "m" : ",m") + std::to_string(i) + "=" + Url(peers_[i]);
    }
    Options options;
    for (int i = 0; i < kMembers; ++i) {
      Start(i, cluster);
      options.members.push_back("127.0.0.1:" + std::to_string(ports_[i]));
    }
    poller_ = std::thread([this] {
      void* tag = nullptr;
      bool ok = false;
      while (queue_.Next(&tag, &ok)) {
      }
    });
    client_ = std::make_unique<Client>(std::move(options));
    std::string sentence;
    ASSERT_TRUE(Within(20, [&] { return Put("first", "1", &sentence); })) << sentence;
  }

  void TearDown() override {
    client_.reset();
    queue_.Shutdown();
    poller_.join();
    for (pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  void Start(int number, const std::string& cluster) {
    const std::string name = "m" + std::to_string(number), data = folder_ + "/" + name;
    const std::string client = Url(ports_[number]), peer = Url(peers_[number]);
    pids_[number] = fork();
    if (pids_[number] != 0) return;
    const int log = open((data + ".log").c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execlp("etcd", "etcd", "--name", name.c_str(), "--data-dir", data.c_str(),
           "--listen-client-urls", client.c_str(), "--advertise-client-urls", client.c_str(),
           "--listen-peer-urls", peer.c_str(), "--initial-advertise-peer-urls", peer.c_str(),
           "--initial-cluster", cluster.c_str(), nullptr);
    _exit(127);
  }

  bool Put(const std::string& key, const std::string& value, std::string* sentence,
           int64_t lease = 0) {
    pb::PutRequest request;
    pb::PutResponse reply;
    request.set_key(key);
    request.set_value(value);
    request.set_lease(lease);
    return client_->Put(request, &reply, sentence);
  }
  // "?" where there is no answer, "-" where there is no such key.
  std::string Get(const std::string& key) {
    pb::RangeRequest request;
    pb::RangeResponse reply;
    std::string sentence;
    request.set_key(key);
    if (!client_->Range(request, &reply, &sentence)) return "?";
    return reply.kvs_size() == 0 ? "-" : reply.kvs(0).value();
  }

  // As in a daemon: somebody sees to connections also between calls.
  grpc::CompletionQueue queue_;
  std::thread poller_;
  std::string folder_;
  int ports_[kMembers] = {}, peers_[kMembers] = {};
  pid_t pids_[kMembers] = {};
  std::unique_ptr<Client> client_;
};

}  // namespace longwire::etcd_testing
