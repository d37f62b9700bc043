#include "server/worker/process/early_reads.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/start_thread.h"

namespace longwire::worker {

EarlyReads::~EarlyReads() {
  {
    base::MutexLock lock(mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) shutdown(stream_, SHUT_RD);  // ends a read that is under way
  if (thread_.joinable()) thread_.join();
}

bool EarlyReads::Start() {
  return base::StartThread(&thread_, [this] { Serve(); });
}

void EarlyReads::Serve() {
  base::MutexLock lock(mutex_);
  while (true) {
    while (!stops_ && read_ - used_ == memory_.size()) changed_.Wait(lock);
    if (stops_) return;
    const size_t at = read_ % memory_.size();
    const auto room =
        memory_.subspan(at, std::min(memory_.size() - at, memory_.size() - (read_ - used_)));
    lock.Unlock();
    ssize_t got = -1;
    do {
      got = read(stream_, room.data(), room.size());
    } while (got < 0 && errno == EINTR);
    lock.Lock();
    if (got > 0) read_ += static_cast<size_t>(got);
    ended_ = got <= 0;
    changed_.NotifyAll();
    if (ended_) return;
  }
}

std::span<const std::byte> EarlyReads::Next(size_t least, size_t most) {
  base::MutexLock lock(mutex_);
  const size_t at = used_ % memory_.size();
  most = std::min(most, memory_.size() - at);
  least = std::min(least, most);
  while (read_ - used_ < least && !ended_) changed_.Wait(lock);
  return memory_.subspan(at, std::min(most, read_ - used_));
}

void EarlyReads::Used(size_t bytes) {
  base::MutexLock lock(mutex_);
  used_ += bytes;
  changed_.NotifyAll();
}

}  // namespace longwire::worker
