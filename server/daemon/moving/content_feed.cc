#include "server/daemon/moving/content_feed.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "wire/guards.h"

namespace longwire::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// Of a worker that takes nothing.
constexpr timeval kFeedPatience{60, 0};
// Of a piece whose connection is not broken, while a later one is here.
constexpr std::chrono::seconds kPiecePatience{120};

}  // namespace

ContentFeed::ContentFeed(wire::Descriptor socket) : socket_(std::move(socket)) {
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &kFeedPatience, sizeof(kFeedPatience));
}

bool ContentFeed::Widen() {
  base::MutexLock lock(mutex_);
  if (wide_ || broken_ || ended_ || come_[0] != 0) return false;
  return wide_ = true;
}

bool ContentFeed::is_wide() const {
  base::MutexLock lock(mutex_);
  return wide_;
}

bool ContentFeed::Take(Way way, std::span<const std::span<const std::byte>> parts) {
  const auto deadline = Clock::now() + kPiecePatience;
  const auto place = static_cast<size_t>(way);
  base::MutexLock lock(mutex_);
  const uint64_t turn = come_[place]++;
  const uint64_t number = wide_ ? 2 * turn + place : turn;
  while (!broken_ && !ended_ && written_ != number && changed_.WaitUntil(lock, deadline)) {
  }
  if (broken_ || ended_ || written_ != number) {
    broken_ = broken_ || !ended_;
    changed_.NotifyAll();
    return false;
  }
  writing_ = true;
  lock.Unlock();
  const bool written = Write(parts);
  lock.Lock();
  writing_ = false;
  written_ += written;
  ended_ = ended_ || !written;
  changed_.NotifyAll();
  return written;
}

// At once, as gRPC cuts a message into many parts.
bool ContentFeed::Write(std::span<const std::span<const std::byte>> parts) const {
  std::vector<iovec> rest;
  for (std::span<const std::byte> part : parts) {
    if (!part.empty()) rest.push_back({const_cast<std::byte*>(part.data()), part.size()});
  }
  for (size_t first = 0; first < rest.size();) {
    msghdr header{};
    header.msg_iov = &rest[first];
    header.msg_iovlen = std::min<size_t>(rest.size() - first, IOV_MAX);
    ssize_t sent = sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    auto left = static_cast<size_t>(sent);
    for (; first < rest.size() && left >= rest[first].iov_len; ++first) left -= rest[first].iov_len;
    if (left == 0) continue;
    rest[first].iov_base = static_cast<std::byte*>(rest[first].iov_base) + left;
    rest[first].iov_len -= left;
  }
  return true;
}

bool ContentFeed::Await(uint64_t pieces) {
  const auto deadline = Clock::now() + kPiecePatience;
  base::MutexLock lock(mutex_);
  while (!broken_ && !ended_ && written_ < pieces && changed_.WaitUntil(lock, deadline)) {
  }
  if (written_ >= pieces) return true;
  broken_ = broken_ || !ended_;
  return false;
}

void ContentFeed::Break() {
  base::MutexLock lock(mutex_);
  broken_ = broken_ || !ended_;
  changed_.NotifyAll();
}

bool ContentFeed::is_broken() const {
  base::MutexLock lock(mutex_);
  return broken_;
}

// Somebody who writes all the same hears it from the system.
void ContentFeed::End() {
  base::MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
  shutdown(socket_.get(), SHUT_WR);
  while (writing_) changed_.Wait(lock);
  socket_.Reset();
}

bool ContentFeed::has_ended() const {
  base::MutexLock lock(mutex_);
  return ended_;
}

bool ArrivingFeeds::Add(const std::string& move, const std::string& from,
                        std::shared_ptr<ContentFeed> feed) {
  return feeds_.try_emplace(move, Arriving{from, std::move(feed)}).second;
}

std::shared_ptr<ContentFeed> ArrivingFeeds::Find(const std::string& move,
                                                 const std::string& from) const {
  const auto found = feeds_.find(move);
  if (found == feeds_.end()) return nullptr;
  const bool offered = found->second.from == from || wire::GuardIsOff("move_joins");
  return offered ? found->second.feed : nullptr;
}

}  // namespace longwire::daemon
