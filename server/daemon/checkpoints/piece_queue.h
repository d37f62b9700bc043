// Pieces on their way from one thread to another, a bounded number of them.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::daemon {

class PieceQueue {
 public:
  using Piece = std::vector<std::byte>;

  explicit PieceQueue(size_t room) : room_(room) {}

  // Waits for room. False: it is closed, and the piece is not taken.
  bool Push(Piece piece) {
    base::MutexLock lock(mutex_);
    while (!closed_ && pieces_.size() >= room_) changed_.Wait(lock);
    if (closed_) return false;
    pieces_.push_back(std::move(piece));
    changed_.NotifyAll();
    return true;
  }
  // Waits for a piece. False: it is closed, and nothing is left in it.
  bool Pop(Piece* piece) {
    base::MutexLock lock(mutex_);
    while (!closed_ && pieces_.empty()) changed_.Wait(lock);
    if (pieces_.empty()) return false;
    *piece = std::move(pieces_.front());
    pieces_.pop_front();
    changed_.NotifyAll();
    return true;
  }
  // Nothing more comes; with `drops`, nobody wants what is in it either.
  void Close(bool drops = false) {
    base::MutexLock lock(mutex_);
    closed_ = true;
    if (drops) pieces_.clear();
    changed_.NotifyAll();
  }

 private:
  const size_t room_;
  base::Mutex mutex_{base::ranks::kPieceQueue};
  base::CondVar changed_;
  std::deque<Piece> pieces_ LONGWIRE_GUARDED_BY(mutex_);
  bool closed_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::daemon
