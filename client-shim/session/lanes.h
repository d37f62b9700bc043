// The session's lanes in the program (wire/lane.h): the bytes of large copies go by them, from and
// to the program's memory, by several threads at once. Nothing of it starts before the first large
// copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/session.h"
#include "client-shim/session/slots.h"
#include "client-shim/session/transfers.h"
#include "wire/ring.h"

namespace longwire::shim {

class Lanes {
 public:
  Lanes(Session& session, const std::vector<LaneRings>& rings);

  // Whether a copy of that size goes by the lanes; either direction.
  bool Carries(uint64_t bytes) const;
  // Before a copy that does: starts what is needed, once. False when the session is over.
  bool Open();
  // Sends all bytes of `place` as pieces of `transfer`; the program may change them after that.
  // False when the session is over.
  bool Send(uint64_t transfer, const HostPlace& place);
  // The worker gives a slot back; false if it does not have it.
  bool GiveSlot(uint64_t offset) { return slots_.Give(offset); }

 private:
  struct Lane {
    explicit Lane(const LaneRings& rings) : up(rings.up), up_memory(*rings.up), down(rings.down) {}
    base::Mutex mutex;
    wire::RingProducer up LONGWIRE_GUARDED_BY(mutex);
    wire::RingMemory& up_memory;  // that of `up`: anyone may ask it or wake the other side
    wire::RingConsumer down;      // of the lane's thread
    uint64_t poked_at = 0;        // of the lane's thread
    Lanes* lanes = nullptr;
  };
  struct Piece {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    Slots::Slot slot;  // without data: they go into the lane
  };
  // One transfer on its way up; lives on its sender's stack.
  struct Job {
    uint64_t transfer = 0;
    const HostPlace* place = nullptr;
    uint64_t total = 0;
    uint64_t piece = 0;
    bool in_slots = false;
    std::atomic<uint64_t> next{0};  // offset of the next piece
    std::atomic<bool> failed{false};
    uint32_t helpers = 0;  // threads at work on it; under jobs_mutex_
  };

  bool Start();
  static bool Connect(Lane& lane);
  void Receive(Lane& lane);
  bool TakePieces(Lane& lane);
  void Rest(Lane& lane);
  void Work(Job& job);
  bool TakeSlot(Slots::Slot* slot);
  bool Put(const Job& job, Piece piece);
  bool PutInto(Lane& lane, const Job& job, const Piece& piece, bool wait);
  void Help();

  Session& session_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Slots slots_;
  std::atomic<uint64_t> stuck_at_{UINT64_MAX};  // so many were given back when none came for long
  std::atomic<uint32_t> turn_{0};
  std::once_flag once_;
  std::atomic<bool> open_{false};

  uint32_t helpers_ = 0;  // threads beside the program's own; written at the start
  base::Mutex jobs_mutex_{base::ranks::kLaneJobs};
  base::CondVar jobs_changed_;
  std::deque<Job*> jobs_ LONGWIRE_GUARDED_BY(jobs_mutex_);  // that could use another thread
};

}  // namespace longwire::shim
