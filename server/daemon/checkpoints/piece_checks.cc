#include "server/daemon/checkpoints/piece_checks.h"

#include <pthread.h>

#include <utility>

#include "base/start_thread.h"

namespace longwire::daemon {

PieceChecks::~PieceChecks() {
  Close(true);
  for (std::thread& thread : threads_) thread.join();
}

void PieceChecks::Start(size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    std::thread thread;
    if (!base::StartThread(&thread, [this] { CheckPieces(); })) return;
    pthread_setname_np(thread.native_handle(), "piece-check");
    threads_.push_back(std::move(thread));
  }
}

bool PieceChecks::Push(CheckedPiece piece) {
  base::MutexLock lock(mutex_);
  while (!is_closed_ && entries_.size() >= room_) changed_.Wait(lock);
  if (is_closed_) return false;
  entries_.push_back({std::move(piece)});
  changed_.NotifyAll();
  return true;
}

bool PieceChecks::Pop(CheckedPiece* piece) {
  base::MutexLock lock(mutex_);
  while (!is_dropped_ && (!entries_.empty() || !is_closed_)) {
    if (entries_.empty() || (begun_ != 0 && !entries_.front().is_checked)) {
      changed_.Wait(lock);
      continue;
    }
    // No thread has begun with the piece that is wanted first: it is checked here.
    const bool is_checked = begun_ != 0;
    *piece = std::move(entries_.front().piece);
    entries_.pop_front();
    if (is_checked) --begun_;
    changed_.NotifyAll();
    lock.Unlock();
    if (!is_checked) check_(*piece);
    return true;
  }
  return false;
}

void PieceChecks::Close(bool drops) {
  base::MutexLock lock(mutex_);
  is_closed_ = true;
  is_dropped_ = is_dropped_ || drops;
  changed_.NotifyAll();
}

// Each of the threads. What one of them checks stays in its place meanwhile.
void PieceChecks::CheckPieces() {
  base::MutexLock lock(mutex_);
  while (!is_dropped_) {
    if (begun_ == entries_.size()) {
      if (is_closed_) return;
      changed_.Wait(lock);
      continue;
    }
    Entry& entry = entries_[begun_++];
    lock.Unlock();
    check_(entry.piece);
    lock.Lock();
    entry.is_checked = true;
    changed_.NotifyAll();
  }
}

}  // namespace longwire::daemon
