#include "server/admission/connections.h"

// The C library's header has an older tcp_info.
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "wire/descriptors.h"
#include "wire/guards.h"

namespace longwire::admission {
namespace {

using std::chrono::milliseconds;

// While bytes may arrive, a faster sender gets this long beyond its limit.
constexpr milliseconds kBusyLook{50};
constexpr milliseconds kQuietLook{1000};
constexpr std::chrono::seconds kBusyFor{10};  // after a connection has begun to wait
// A request to open has 192 KiB; the largest round of pings less than 1 MiB.
constexpr uint64_t kBytesOfOne = 4 << 20;

ino_t FileOf(int socket) {
  struct stat status {};
  return fstat(socket, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

uint64_t ReceivedOn(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return length >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)
             ? info.tcpi_bytes_received
             : 0;
}

// An IPv6 address without its zone, which is written in several ways.
std::string PlainPeer(std::string peer) {
  size_t zone = peer.find('%');
  if (zone != std::string::npos) peer.erase(zone, peer.find(']', zone) - zone);
  return peer;
}

std::string HostOf(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace

void Connections::DropClosed() {
  std::erase_if(connections_,
                [](const auto& entry) { return FileOf(entry.second.socket) != entry.second.file; });
}

// The duplicate keeps the file while it is compared: its number cannot become another file's.
void Connections::Close(Connection& connection) {
  wire::Descriptor own(fcntl(connection.socket, F_DUPFD_CLOEXEC, 3));
  const int socket = own.valid() ? own.get() : connection.socket;  // without descriptors left
  if (connection.closing || FileOf(socket) != connection.file) return;
  shutdown(socket, SHUT_RDWR);
  connection.closing = true;
  ++closed_;
}

// First one that has sent nothing, then one that nobody has called on; of these, that has waited
// longest. So a flood of silent ones does not close one whose handshake is under way. Whoever
// floods has this done for each connection: the system is asked about few of them.
Connections::Connection* Connections::OldestOf(const std::string& host) {
  while (true) {
    Connection* oldest = nullptr;
    std::tuple<bool, bool, Clock::time_point> least;
    for (auto& [peer, one] : connections_) {
      if (one.sessions != 0 || one.closing || one.host != host) continue;
      const std::tuple order(one.used || one.spoke, one.used, one.since);
      if (oldest != nullptr && order >= least) continue;
      oldest = &one;
      least = order;
    }
    const bool known = oldest == nullptr || oldest->used || oldest->spoke;
    if (known || ReceivedOn(oldest->socket) == 0) return oldest;
    oldest->spoke = true;
  }
}

std::string Connections::HostWithMost(const std::string& arriving) {
  std::map<std::string_view, size_t> waiting;
  ++waiting[arriving];
  for (const auto& [peer, one] : connections_) {
    if (one.sessions == 0 && !one.closing) ++waiting[one.host];
  }
  auto most = std::ranges::max_element(waiting, {}, [](const auto& one) { return one.second; });
  return std::string(most->first);
}

// Before another one of `host` is added.
bool Connections::MakeRoom(const std::string& host, const Limits& limits) {
  if (connections_.size() < std::min(limits.of_address, limits.all)) return true;
  size_t of_host = 1, all = 0, closing = 0;
  for (const auto& [peer, one] : connections_) {
    if (one.sessions != 0) continue;
    if (one.closing) {
      ++closing;
      continue;
    }
    ++all;
    if (one.host == host) ++of_host;
  }
  if (all + closing >= 2 * limits.all) return false;  // gRPC has not closed them yet
  const bool address_full = of_host > limits.of_address;
  if (!address_full && all < limits.all) return true;
  Connection* oldest = OldestOf(address_full ? host : HostWithMost(host));
  if (oldest != nullptr) Close(*oldest);
  return oldest != nullptr || all < limits.all;
}

bool Connections::Arrived(int socket, const std::string& peer, Clock::time_point now) {
  const Limits limits = limits_();
  Connection connection;
  connection.socket = socket;
  connection.file = FileOf(socket);
  connection.since = now;
  const std::string plain = PlainPeer(peer);
  connection.host = HostOf(plain);
  base::MutexLock lock(mutex_);
  if (now - dropped_ >= kBusyLook) {
    DropClosed();
    dropped_ = now;
  }
  if (!MakeRoom(connection.host, limits) && !wire::GuardIsOff("waiting")) {
    ++closed_;
    return false;
  }
  connections_[plain] = std::move(connection);
  return true;
}

void Connections::Used(const std::string& peer) {
  base::MutexLock lock(mutex_);
  auto found = connections_.find(PlainPeer(peer));
  if (found != connections_.end()) found->second.used = true;
}

void Connections::Attached(const std::string& peer) {
  base::MutexLock lock(mutex_);
  auto found = connections_.find(PlainPeer(peer));
  if (found != connections_.end()) ++found->second.sessions;
}

void Connections::Detached(const std::string& peer, Clock::time_point now) {
  base::MutexLock lock(mutex_);
  auto found = connections_.find(PlainPeer(peer));
  if (found == connections_.end() || found->second.sessions == 0) return;
  Connection& connection = found->second;
  if (--connection.sessions != 0) return;
  connection.since = now;
  connection.bytes_before = ReceivedOn(connection.socket);
}

// `bytes`: of all that wait.
void Connections::CloseTheLargest(uint64_t bytes, uint64_t most) {
  while (bytes > most) {
    Connection* largest = nullptr;
    for (auto& [peer, one] : connections_) {
      if (one.sessions != 0 || one.closing || one.bytes == 0) continue;
      if (largest == nullptr || one.bytes > largest->bytes) largest = &one;
    }
    if (largest == nullptr) return;
    bytes -= largest->bytes;
    Close(*largest);
    largest->closing = true;
  }
}

milliseconds Connections::Sweep(Clock::time_point now) {
  const Limits limits = limits_();
  base::MutexLock lock(mutex_);
  DropClosed();
  uint64_t all = 0;
  bool any = false, busy = false;
  for (auto& [peer, one] : connections_) {
    if (one.sessions != 0 || one.closing) continue;
    const uint64_t received = ReceivedOn(one.socket);
    const uint64_t before = one.bytes;
    one.bytes = received - std::min(received, one.bytes_before);
    any = true;
    busy |= one.bytes != before || now - one.since < kBusyFor;
    const bool late = !one.used && now - one.since >= limits.opening_time;
    if (late || one.bytes > kBytesOfOne) {
      if (!wire::GuardIsOff("waiting")) Close(one);
    } else {
      all += one.bytes;
    }
  }
  CloseTheLargest(all, limits.bytes);
  return any ? (busy ? kBusyLook : kQuietLook) : milliseconds(-1);
}

Connections::Figures Connections::figures() {
  base::MutexLock lock(mutex_);
  DropClosed();
  Figures figures;
  figures.closed = closed_;
  for (const auto& [peer, one] : connections_) figures.waiting += one.sessions == 0 ? 1 : 0;
  return figures;
}

}  // namespace longwire::admission
