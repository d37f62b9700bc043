// Writes the session's down log (worker to client). Any thread may write; records are sent in the
// order of the calls. The log thread must never wait for the client. So if the ring is full,
// records wait in a queue that a thread of this class empties; only writers of bulk data wait
// (Data).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/record.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class HostMemory;

class DownWriter {
 public:
  // What waits is counted in `host_memory`, if it is not null.
  explicit DownWriter(std::shared_ptr<wire::RingMemory> memory, HostMemory* host_memory = nullptr);
  ~DownWriter();
  DownWriter(const DownWriter&) = delete;
  DownWriter& operator=(const DownWriter&) = delete;

  void Reply(uint64_t position, int32_t code, std::span<const std::byte> payload);
  void Progress(uint64_t stream, uint64_t position);
  // Device-to-host bytes, cut into records. Waits while the client is far behind, so the log thread
  // must not call it.
  void Data(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes);
  // A delta of at most kDeltaBytes; waits as Data does.
  void Mirror(uint64_t mirror, std::span<const std::byte> delta);
  // Later records take effect once `bytes` of the transfer have arrived through lanes.
  void Landing(uint64_t transfer, uint64_t bytes);
  void Pull(uint64_t transfer);
  void HostFunction(uint64_t ticket);
  // No graph uses this transfer or host function any more (0: none).
  void Release(uint64_t transfer, uint64_t ticket);
  void Error(uint64_t position, int32_t code, uint16_t flags, uint32_t context,
             std::string_view text);
  void Text(uint16_t flags, std::span<const std::byte> bytes);
  // Leaves with the next record, or at once where more bytes are owed than may be held back
  // (HoldCredit).
  void Credit(uint64_t bytes);
  void Slot(uint64_t offset);
  void Reclaim(const wire::ReclaimRequest& request);

  // While one lives, short records are collected: the bytes of a finished copy and the progress of
  // its stream become one message instead of two. One at a time.
  class Together {
   public:
    explicit Together(DownWriter& writer);
    ~Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;

   private:
    DownWriter& writer_;
  };

  // The bytes of credit that may wait; 0: none. Before Start.
  void HoldCredit(uint64_t bytes);
  bool OwesCredit();
  void PayCredit();

  // Bytes that the client's end has still to take.
  uint64_t Backlog();

  // The session is idle: returns the ring's memory to the system. False if the ring holds bytes.
  bool Rest();
  // For a session that is rebuilt: what it says is dropped until it is reopened. Before Start.
  void Mute() { muted_ = true; }
  bool is_muted() const { return muted_; }
  // Writes on from the ring's position.
  void Reopen(std::shared_ptr<wire::RingMemory> memory);
  // True if the ring has all records.
  bool HasWrittenAll();
  // Closes the ring once earlier records were sent, or after `limit`.
  void CloseAfterFlush(uint32_t code, std::chrono::milliseconds limit);

 private:
  void Write(wire::DownHeader header, std::span<const std::byte> first,
             std::span<const std::byte> second, bool may_wait);
  // Writes what is owed; it is published with what follows.
  void WriteOwed() LONGWIRE_REQUIRES(mutex_);
  void Queue(const wire::DownHeader& header, std::span<const std::byte> first,
             std::span<const std::byte> second) LONGWIRE_REQUIRES(mutex_);
  bool WriteToRing(const wire::DownHeader& header, std::span<const std::byte> first,
                   std::span<const std::byte> second) LONGWIRE_REQUIRES(mutex_);
  void Drain();
  void CountQueued() LONGWIRE_REQUIRES(mutex_);
  void Publish() LONGWIRE_REQUIRES(mutex_);

  HostMemory* const host_memory_;
  base::Mutex mutex_{base::ranks::kDownWriter};
  base::CondVar changed_;
  // While the queue is empty the holder of the mutex owns the producer, else the thread does.
  wire::RingProducer producer_;
  std::deque<std::vector<std::byte>> queue_ LONGWIRE_GUARDED_BY(mutex_);
  size_t queued_bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool together_ LONGWIRE_GUARDED_BY(mutex_) = false;
  size_t unpublished_ LONGWIRE_GUARDED_BY(mutex_) = 0;    // bytes in the ring
  uint64_t held_credit_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // bytes that may be owed
  uint64_t owed_credit_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // bytes
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::atomic<bool> muted_{false};
  std::thread thread_;
};

}  // namespace longwire::worker
