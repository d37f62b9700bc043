#include "server/daemon/listener.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/reason.h"
#include "link/certificates/tcp_listener.h"
#include "link/transport/log.h"

namespace longwire::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;

constexpr int kBacklog = 512;
// Links send at once. Beyond this number gRPC waits for the first byte itself.
constexpr size_t kMaxArrivals = 256;
constexpr std::chrono::seconds kFirstBytePatience{5};
constexpr std::chrono::milliseconds kDeadlineCheck{500};  // of arrivals
constexpr unsigned char kTlsHandshake = 0x16;  // the first byte of a TLS record of that type
// A fatal alert: protocol_version (RFC 8446, 5.1 and 6).
constexpr unsigned char kNoTlsHere[] = {0x15, 3, 3, 0, 2, 2, 70};
// Most likely out of memory: wait instead of spinning.
constexpr useconds_t kPauseMicroseconds = 10'000;

// So that the client can tell this server from one that is too busy for it.
void SayNoTls(int socket) {
  char hello[4096];  // what is left unread would reset the connection, and lose the alert
  static_cast<void>(recv(socket, hello, sizeof(hello), MSG_DONTWAIT));
  static_cast<void>(send(socket, kNoTlsHere, sizeof(kNoTlsHere), MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace

bool Listener::Open(const std::vector<transport::Address>& addresses, std::string* sentence) {
  for (const transport::Address& address : addresses) {
    auto opened = transport::ListenTcp(address, kBacklog, "longwired", sentence);
    if (opened.empty()) return false;
    std::ranges::move(opened, std::back_inserter(sockets_));
  }
  for (const wire::Descriptor& socket : sockets_) {
    Log(LogLevel::kInfo, "listening at " + transport::BoundAddress(socket.get()).Text());
  }
  return true;
}

void Listener::Start(Speech speech, admission::Connections& connections, Accepted accepted) {
  speech_ = speech;
  connections_ = &connections;
  accepted_ = std::move(accepted);
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { Loop(); });
}

void Listener::Accept(int listener) {
  sockaddr_storage storage{};
  wire::Descriptor socket = transport::AcceptTcp(listener, &storage);
  if (!socket.valid()) {
    const int error = errno;
    if (error != 0 && std::exchange(accept_error_, error) != error) {
      Log(LogLevel::kError, "no connection can be accepted: " + base::Reason(error));
    }
    return;
  }
  accept_error_ = 0;
  std::string from = transport::AddressOf(storage).Text();
  if (!connections_->Arrived(socket.get(), from, Clock::now())) {
    Log(LogLevel::kWarning, {.peer = from},
        "a connection from " + from +
            " was closed: too many wait for a session (admission.waiting)");
    return;
  }
  // What says nothing costs gRPC nothing, with TLS neither.
  if (arrivals_.size() >= kMaxArrivals) {
    accepted_(std::move(socket), from);
  } else {
    arrivals_.push_back(
        {std::move(socket), std::move(from), Clock::now() + kFirstBytePatience, {}});
  }
}

bool Listener::Greet(Arrival& arrival, bool readable) {
  if (!readable) return Clock::now() >= arrival.deadline;
  unsigned char first = 0;
  if (recv(arrival.socket.get(), &first, 1, MSG_PEEK) != 1) return true;
  if (first == kTlsHandshake && speech_ != Speech::kTls) {
    Log(LogLevel::kWarning, {.peer = arrival.from},
        "a connection from " + arrival.from +
            " was refused: it begins with TLS, but this server's configuration "
            "has no tls");
    SayNoTls(arrival.socket.get());
  } else {
    accepted_(std::move(arrival.socket), arrival.from);
  }
  return true;
}

void Listener::Loop() {
  base::PollSet set;
  std::vector<base::PollSet::Entry> listening(sockets_.size());
  while (true) {
    set.Clear();
    base::PollSet::Entry wake = set.Add(wake_.get());
    std::ranges::transform(sockets_, listening.begin(),
                           [&](const wire::Descriptor& socket) { return set.Add(socket.get()); });
    for (Arrival& arrival : arrivals_) arrival.first_byte = set.Add(arrival.socket.get());
    if (set.Wait(TimeToWait()) < 0) {
      usleep(kPauseMicroseconds);
      continue;
    }
    if (stopping_.load()) return;
    uint64_t woken = 0;
    if (set.Ready(wake) && read(wake_.get(), &woken, sizeof(woken)) < 0) return;
    for (auto arrival = arrivals_.begin(); arrival != arrivals_.end();) {
      bool over = Greet(*arrival, set.Ready(arrival->first_byte));
      arrival = over ? arrivals_.erase(arrival) : std::next(arrival);
    }
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (set.Ready(listening[i])) Accept(sockets_[i].get());
    }
  }
}

std::chrono::milliseconds Listener::TimeToWait() {
  const auto now = Clock::now();
  std::chrono::milliseconds look(-1);
  if (now >= next_sweep_) {
    look = connections_->Sweep(now);
    next_sweep_ = look.count() < 0 ? now : now + look;
  } else {
    look = std::chrono::ceil<std::chrono::milliseconds>(next_sweep_ - now);
  }
  if (arrivals_.empty()) return look;
  return look.count() < 0 ? kDeadlineCheck : std::min(look, kDeadlineCheck);
}

void Listener::Wake() {
  uint64_t one = 1;
  // Full: it is awake anyway.
  if (wake_.valid() && write(wake_.get(), &one, sizeof(one)) < 0) return;
}

void Listener::Stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  Wake();
  thread_.join();
  arrivals_.clear();
  sockets_.clear();
}

}  // namespace longwire::daemon
