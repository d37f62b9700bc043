// Pieces of a checkpoint file that several threads check at once, and that come out in the order in
// which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/checkpoints/piece_cipher.h"

namespace longwire::daemon {

struct CheckedPiece {
  std::vector<std::byte> bytes;  // as they are in the file; once checked, the content
  uint64_t number = 0;           // of the pieces before it
  Digest before{}, after{};      // what the file has in front of it and behind it
  std::string problem;           // once checked; empty: it is what was written
};

class PieceChecks {
 public:
  // Holds up to `room` pieces. `check` is called in any of the threads.
  PieceChecks(size_t room, std::function<void(CheckedPiece&)> check)
      : room_(room), check_(std::move(check)) {}
  ~PieceChecks();
  PieceChecks(const PieceChecks&) = delete;
  PieceChecks& operator=(const PieceChecks&) = delete;

  // Without threads, or if the system starts none, Pop checks.
  void Start(size_t threads);
  // Waits for room. False: it is closed, and the piece is not taken.
  bool Push(CheckedPiece piece);
  // Waits for the next piece and its check. False: it is closed, and nothing is left in it.
  bool Pop(CheckedPiece* piece);
  // Nothing more comes; with `drops`, nobody wants what is in it either.
  void Close(bool drops = false);

 private:
  struct Entry {
    CheckedPiece piece;
    bool is_checked = false;
  };
  void CheckPieces();

  const size_t room_;
  const std::function<void(CheckedPiece&)> check_;
  base::Mutex mutex_{base::ranks::kPieceChecks};
  base::CondVar changed_;
  // The first `begun_` belong to the threads that check them until they are checked.
  std::deque<Entry> entries_ LONGWIRE_GUARDED_BY(mutex_);
  size_t begun_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool is_closed_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool is_dropped_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace longwire::daemon
