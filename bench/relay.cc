#include "bench/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace longwire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using std::chrono::nanoseconds;

constexpr size_t kPiece = size_t{64} << 10;  // read at once, and sent of one connection in a row
// On the wire for each connection: 30 ms at 10 Gbit/s are 38 MB.
constexpr size_t kMaxBytesInFlight = size_t{64} << 20;
// A thread spins for this time after it had something to do, and before a byte is due: longer than
// the kernel takes to wake it.
constexpr std::chrono::microseconds kSpinTime{150};
// What may pass at once after a pause: as much as a network card sends in one go.
constexpr double kBurst = 64 << 10;

int LoopbackSocket(uint16_t port, sockaddr_in* address) {
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address->sin_port = htons(port);
  return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

// Both ends of one connection, open until neither direction needs them any more.
struct Connection {
  int near = -1, far = -1;
  ~Connection() {
    close(near);
    close(far);
  }
};

struct Piece {
  Time due;
  std::vector<char> bytes;
  size_t sent = 0;
};

// One direction of one connection.
struct Flow {
  std::shared_ptr<Connection> connection;
  int from = -1, to = -1;
  std::deque<Piece> pieces;
  size_t under_way = 0;  // bytes in them
  bool ended = false;    // nothing more comes
  bool full = false;     // the far end did not take the last piece whole
  bool over = false;     // everything was passed on, or cannot be
};

// Lets bytes through at a rate; what was not used is kept for one burst only.
class TokenBucket {
 public:
  explicit TokenBucket(double bytes_per_second) : rate_(bytes_per_second) {}

  size_t Allowed(Time now, size_t wanted) {
    if (rate_ == 0) return wanted;
    double seconds = std::chrono::duration<double>(now - filled_).count();
    tokens_ = std::min(tokens_ + seconds * rate_, kBurst);
    filled_ = now;
    // Not byte by byte.
    bool enough = tokens_ >= static_cast<double>(std::min<size_t>(wanted, kLeast));
    return enough ? std::min(wanted, static_cast<size_t>(tokens_)) : 0;
  }
  void Take(size_t bytes) { tokens_ -= rate_ == 0 ? 0 : static_cast<double>(bytes); }
  // When it lets something through again.
  Time Next() const {
    double missing = std::max(0.0, static_cast<double>(kLeast) - tokens_);
    return filled_ + nanoseconds(static_cast<int64_t>(missing / rate_ * 1e9));
  }

 private:
  static constexpr size_t kLeast = 1448;  // a packet
  const double rate_;
  double tokens_ = kBurst;
  Time filled_ = Clock::now();
};

}  // namespace

// All connections' bytes of one way, moved by one thread.
class RelayDirection {
 public:
  explicit RelayDirection(WireShape shape) : shape_(shape), bucket_(shape.bytes_per_second) {
    thread_ = std::thread([this] { Loop(); });
  }
  ~RelayDirection() {
    stopping_.store(true);
    Wake();
    thread_.join();
    close(wake_);
  }

  void Add(std::shared_ptr<Connection> connection, int from, int to) {
    {
      std::lock_guard lock(mutex_);
      Flow flow;
      flow.connection = std::move(connection);
      flow.from = from;
      flow.to = to;
      added_.push_back(std::move(flow));
      any_added_.store(true);
    }
    Wake();
  }

 private:
  void Wake() {
    uint64_t one = 1;
    if (write(wake_, &one, sizeof(one)) < 0) std::abort();  // its count cannot overflow
  }

  void Loop() {
    prctl(PR_SET_TIMERSLACK, 1);
    Time look_until = Clock::now();
    while (!stopping_.load()) {
      if (any_added_.load()) TakeAdded();
      bool moved = false;
      std::optional<Time> next;  // when something is due without anybody's doing
      for (Flow& flow : flows_) {
        moved |= Receive(flow);
        moved |= Send(flow, &next);
      }
      std::erase_if(flows_, [](const Flow& flow) { return flow.over; });
      // Another one is the first to ask for what the bucket has.
      if (!flows_.empty()) std::rotate(flows_.begin(), flows_.begin() + 1, flows_.end());
      Time now = Clock::now();
      if (moved) look_until = now + kSpinTime;
      if (now >= look_until && !(next && *next <= now + kSpinTime)) Sleep(next);
    }
  }

  bool Receive(Flow& flow) {
    if (flow.ended || flow.under_way >= kMaxBytesInFlight) return false;
    if (buffer_.empty()) buffer_.resize(kPiece);
    ssize_t got = recv(flow.from, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      flow.ended = true;
      return true;
    }
    Piece piece;
    piece.due = Clock::now() + shape_.one_way;
    piece.bytes.assign(buffer_.data(), buffer_.data() + got);
    flow.under_way += piece.bytes.size();
    flow.pieces.push_back(std::move(piece));
    return true;
  }

  // Sends what is due of one connection, a piece at most, so that all have their turn.
  bool Send(Flow& flow, std::optional<Time>* next) {
    auto at = [&](Time time) { *next = *next ? std::min(**next, time) : time; };
    if (flow.pieces.empty()) {
      if (!flow.ended) return false;
      shutdown(flow.to, SHUT_WR);
      flow.over = true;
      return true;
    }
    Time now = Clock::now();
    Piece& piece = flow.pieces.front();
    if (piece.due > now) {
      at(piece.due);
      return false;
    }
    size_t left = piece.bytes.size() - piece.sent;
    size_t allowed = bucket_.Allowed(now, left);
    if (allowed == 0) {
      at(bucket_.Next());
      return false;
    }
    ssize_t sent =
        send(flow.to, piece.bytes.data() + piece.sent, allowed, MSG_DONTWAIT | MSG_NOSIGNAL);
    flow.full = sent < 0 && errno == EAGAIN;
    if (flow.full) return false;
    if (sent < 0) {
      // Nobody takes it: the sender shall know.
      shutdown(flow.from, SHUT_RDWR);
      flow.over = true;
      return true;
    }
    bucket_.Take(static_cast<size_t>(sent));
    piece.sent += static_cast<size_t>(sent);
    flow.under_way -= static_cast<size_t>(sent);
    if (piece.sent == piece.bytes.size()) flow.pieces.pop_front();
    return true;
  }

  // Until something comes, can be sent again, or is nearly due.
  void Sleep(const std::optional<Time>& next) {
    waiting_.assign(1, {wake_, POLLIN, 0});
    for (const Flow& flow : flows_) {
      if (!flow.ended && flow.under_way < kMaxBytesInFlight)
        waiting_.push_back({flow.from, POLLIN, 0});
      if (flow.full) waiting_.push_back({flow.to, POLLOUT, 0});
    }
    timespec time{};
    if (next) {
      auto left = std::max(nanoseconds(0), nanoseconds(*next - Clock::now() - kSpinTime));
      time.tv_sec = left.count() / 1'000'000'000;
      time.tv_nsec = left.count() % 1'000'000'000;
    }
    ppoll(waiting_.data(), waiting_.size(), next ? &time : nullptr, nullptr);
  }

  void TakeAdded() {
    std::lock_guard lock(mutex_);
    uint64_t count = 0;
    if (read(wake_, &count, sizeof(count)) > 0) any_added_.store(false);
    for (Flow& flow : added_) flows_.push_back(std::move(flow));
    added_.clear();
  }

  const WireShape shape_;
  TokenBucket bucket_;
  std::vector<char> buffer_;
  std::deque<Flow> flows_;
  std::vector<pollfd> waiting_;
  int wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::atomic<bool> stopping_{false};
  std::atomic<bool> any_added_{false};
  std::mutex mutex_;
  std::vector<Flow> added_;  // under mutex_
  std::thread thread_;
};

Relay::Relay(uint16_t target, WireShape shape)
    : target_(target),
      up_(std::make_unique<RelayDirection>(shape)),
      down_(std::make_unique<RelayDirection>(shape)) {}

Relay::~Relay() {
  if (listener_ >= 0) shutdown(listener_, SHUT_RDWR);
  if (accepting_.joinable()) accepting_.join();
  if (listener_ >= 0) close(listener_);
}

bool Relay::Start(uint16_t port) {
  sockaddr_in address;
  listener_ = LoopbackSocket(port, &address);
  if (listener_ < 0) return false;
  int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  socklen_t length = sizeof(address);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, name, length) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, name, &length) != 0) {
    return false;
  }
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
  return true;
}

void Relay::Accept() {
  while (true) {
    int near = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (near < 0 && errno == EINTR) continue;
    if (near < 0) return;
    auto connection = std::make_shared<Connection>();
    connection->near = near;
    sockaddr_in address;
    connection->far = LoopbackSocket(target_, &address);
    if (connect(connection->far, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      continue;  // closes both
    }
    int on = 1;
    for (int end : {connection->near, connection->far}) {
      setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    up_->Add(connection, connection->near, connection->far);
    down_->Add(connection, connection->far, connection->near);
  }
}

}  // namespace longwire::bench
