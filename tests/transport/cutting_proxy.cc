#include "tests/transport/cutting_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>

namespace longwire::transport {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

wire::Descriptor NewSocket() {
  return wire::Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

void NoDelay(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

CuttingProxy::CuttingProxy(uint16_t target) : target_(target), listener_(NewSocket()) {
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
  listen(listener_.get(), 64);
  thread_ = std::thread([this] { Loop(); });
}

CuttingProxy::~CuttingProxy() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
  Cut();
  for (Pair& pair : pairs_) {
    pair.up.join();
    pair.down.join();
  }
}

void CuttingProxy::Loop() {
  while (true) {
    wire::Descriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::lock_guard lock(mutex_);
    if (ending_) return;
    if (!client.valid() || blocked_) continue;
    wire::Descriptor server = NewSocket();
    sockaddr_in address = Loopback(target_);
    if (connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      continue;
    }
    NoDelay(client.get());
    NoDelay(server.get());
    Pair& pair = pairs_.emplace_back();
    pair.client = std::move(client);
    pair.server = std::move(server);
    pair.up = std::thread(Copy, pair.client.get(), pair.server.get());
    pair.down = std::thread(Copy, pair.server.get(), pair.client.get());
  }
}

void CuttingProxy::Copy(int from, int to) {
  std::array<char, 64 << 10> bytes;
  while (true) {
    ssize_t got = recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0 || send(to, bytes.data(), static_cast<size_t>(got), MSG_NOSIGNAL) != got) break;
  }
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
}

size_t CuttingProxy::Cut() {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (Pair& pair : pairs_) {
    if (pair.cut) continue;
    pair.cut = true;
    ++count;
    shutdown(pair.client.get(), SHUT_RDWR);
    shutdown(pair.server.get(), SHUT_RDWR);
  }
  return count;
}

void CuttingProxy::Block(bool blocked) {
  std::lock_guard lock(mutex_);
  blocked_ = blocked;
}

}  // namespace longwire::transport
