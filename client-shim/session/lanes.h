// The session's lanes on the client's side (wire/lane.h). Several threads copy the bytes of large
// copies between the program's memory and the lanes' rings. No thread starts before the first large
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
#include "client-shim/session/upload_source.h"
#include "wire/rings/ring.h"

namespace longwire::shim {

class Lanes {
 public:
  Lanes(ClientSession& session, const std::vector<LaneRings>& rings);

  // True if copies of this size, in either direction, use the lanes.
  bool Carries(uint64_t bytes) const;
  // Called before such a copy: starts the lanes' threads, once. False if the session is over.
  bool Open();
  // Sends all bytes of `source` as pieces of `transfer`; the program may change them after that.
  // False when the session is over.
  bool Send(uint64_t transfer, const UploadSource& source);
  // The worker returns a slot. False if it had none at this offset.
  bool GiveSlot(uint64_t offset) { return slots_.Give(offset); }

 private:
  struct Lane {
    explicit Lane(const LaneRings& rings) : up(rings.up), up_memory(*rings.up), down(rings.down) {}
    base::Mutex mutex;
    wire::RingProducer up LONGWIRE_GUARDED_BY(mutex);
    wire::RingMemory& up_memory;  // of `up`; any thread may read its state or wake the other side
    wire::RingConsumer down;      // of the lane's thread
    uint64_t poked_at = 0;        // of the lane's thread
    Lanes* lanes = nullptr;
  };
  struct Piece {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    Slots::Slot slot;  // without memory: the bytes go into the lane's ring
  };
  // An upload in progress; lives on its sender's stack.
  struct Job {
    uint64_t transfer = 0;
    const UploadSource* source = nullptr;
    uint64_t total = 0;
    uint64_t piece = 0;
    bool in_slots = false;
    std::atomic<uint64_t> next{0};  // offset of the next piece
    std::atomic<bool> failed{false};
    uint32_t helpers = 0;  // threads at work on it; under jobs_mutex_
  };

  // How many bytes of such a copy, its first, take the log.
  uint64_t InLog(uint64_t bytes) const;
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

  ClientSession& session_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Slots slots_;
  // Number of returned slots when a wait for one took too long; UINT64_MAX: none did.
  std::atomic<uint64_t> stuck_at_{UINT64_MAX};
  std::atomic<uint32_t> turn_{0};
  std::once_flag once_;
  std::atomic<bool> open_{false};

  uint32_t helpers_ = 0;  // threads beside the program's own; written at the start
  base::Mutex jobs_mutex_{base::ranks::kLaneJobs};
  base::CondVar jobs_changed_;
  std::deque<Job*> jobs_ LONGWIRE_GUARDED_BY(jobs_mutex_);  // those that can use more threads
};

}  // namespace longwire::shim
