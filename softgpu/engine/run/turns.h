// Whose kernels run: those of one context of a device at a time. The contexts of a process, as
// those of several processes, take turns on hardware, and what one writes in its turn is seen by
// the others as a whole (docs/decisions/0063-order-of-live-memory.md). Copies, fills and values of
// streams are no kernels and wait for nobody.
//
// A turn is measured in instructions, not in time: so what a short kernel does is in one turn
// however slow the host is. It passes on early where nobody uses it. Contexts that want one wait in
// a row.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "softgpu/engine/mutex.h"

namespace softgpu {

class ContextTurns {
 public:
  // A context; only compared.
  using Owner = const void*;
  static ContextTurns& Of(int device);

  // Waits until the owner's kernels may run. Every Enter has a Leave.
  void Enter(Owner owner);
  void Leave();
  // What the owner has run since it entered; true if it should let others have their turn.
  bool Use(int64_t instructions);

 private:
  struct Party {
    Owner owner;
    uint64_t number = 0;
    int threads = 0;
  };

  base::Mutex mutex_;
  base::CondVar changed_;
  Owner owner_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
  int inside_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // threads
  std::deque<Party> waiting_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t last_ LONGWIRE_GUARDED_BY(mutex_) = 0;    // number that a party got
  uint64_t served_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // the last one that had its turn
  std::atomic<bool> wanted_{false};                  // somebody waits
  std::atomic<int64_t> used_{0};                     // instructions in this turn
};

// A thread's part in its context's turns.
class ContextTurn {
 public:
  ContextTurn(ContextTurns& turns, ContextTurns::Owner owner) : turns_(turns), owner_(owner) {
    turns_.Enter(owner_);
  }
  ~ContextTurn() { turns_.Leave(); }
  ContextTurn(const ContextTurn&) = delete;
  ContextTurn& operator=(const ContextTurn&) = delete;

  void Used(int64_t instructions) {
    if (!turns_.Use(instructions)) return;
    turns_.Leave();
    turns_.Enter(owner_);
  }

 private:
  ContextTurns& turns_;
  const ContextTurns::Owner owner_;
};

}  // namespace softgpu
