// Upload bytes that arrived ahead of their use: pieces of copies, whole module images, the host
// reads of graphs. A piece is credited to the client when it arrives while little is kept, else
// when it is used, so that copies behind a waiting stream do not hold up other streams. Images are
// not counted: the client waits for each one's answer.
//
// Pieces come by the log, in order, and by lanes, in any order and even before the copy's own
// record. Those of a copy that its stream waits for land in pinned memory at once, from where the
// device reads them; others are kept in memory of the process. Those that the client has put into
// memory that it shares stay there.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/objects.h"
#include "server/worker/transfer/in_flight.h"
#include "server/worker/transfer/staging.h"

namespace longwire::worker {

// Memory in which the bytes of a transfer are wanted again and again: of a graph's node.
struct TransferTarget {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::atomic<uint64_t> received{0};  // bytes
};

class Transfers {
 public:
  // What the session does for it, on any thread.
  struct Uses {
    std::function<void(uint64_t bytes)> credit;
    // Pinned memory for a copy in the stream; false: none is free.
    std::function<bool(Stream&, size_t bytes, StagingBlock*)> acquire;
    // `stream`: the copy's, nullptr if its record has not come or waits behind others.
    std::function<void(Stream* stream, const StagingBlock&)> release;
  };
  explicit Transfers(Uses uses) : uses_(std::move(uses)) {}
  // Before the session starts.
  void SetLimits(const InFlightLimits& limits) { limits_ = limits; }
  const InFlightLimits& limits() const { return limits_; }

  struct Piece {
    uint64_t offset = 0;
    size_t size = 0;
    size_t done = 0;      // of `bytes`: went to the device already
    StagingBlock pinned;  // without data: the bytes are in `bytes`
    std::vector<std::byte> bytes;
    bool credited = false;
  };

  // A copy of `bytes` bytes will use this transfer. False if the number is in use.
  bool ExpectCopy(uint64_t transfer, uint64_t bytes);
  // The copy is the next of its stream: pieces land in pinned memory from now on.
  void BeginLanding(uint64_t transfer, const std::shared_ptr<Stream>& stream);
  // Takes a piece out; false if none is there. *wrong: it is not of what the copy needs, or the
  // copy is unknown.
  bool Take(uint64_t transfer, Piece* piece, bool* wrong);
  void PutBack(uint64_t transfer, Piece piece);
  // The piece's bytes are with the device, or its memory is in other hands.
  void Used(const Piece& piece);
  // The copy is done with, or fell away: later pieces of it are only credited.
  void FinishCopy(uint64_t transfer);

  // Of a copy whose bytes may be revised until its stream gets there. False: they are not its.
  bool Revise(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes);
  // What came of it counts no more: its bytes are to be asked for.
  void PullInstead(uint64_t transfer);
  // The stream got there: the bytes stay as they are. True if they are to be asked for.
  bool Settle(uint64_t transfer);

  // Bytes of the transfer go into the target's memory from now on.
  void Attach(uint64_t transfer, const std::shared_ptr<TransferTarget>& target);
  void Detach(uint64_t transfer);

  // The path by which bytes came. A lane carries pieces of copies, or names the slot of the
  // segment (host_segment.h) one lies: such a piece stays there.
  enum class Way { kLog, kLane, kSlot };
  // False: the client broke a rule (too much, out of range).
  bool Arrived(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes, Way way);

  // A module image that arrived whole; any thread. The buffer has kPadding zeros behind the bytes.
  static constexpr size_t kPadding = 64;
  bool TakeImage(uint64_t transfer, uint64_t bytes, std::vector<std::byte>* image);
  // The same, waiting until it has arrived; false also when the session is over.
  bool WaitForImage(uint64_t transfer, uint64_t bytes, std::vector<std::byte>* image);
  // The session is over: nobody waits any more.
  void Stop();

 private:
  struct Copy {
    uint64_t bytes = 0;
    uint64_t arrived = 0;
    bool announced = false;  // its record was read
    bool finished = false;
    bool settled = false;            // its stream got there
    bool pulled = false;             // its bytes are to be asked for
    uint32_t landing = 0;            // pieces that are being put away
    std::shared_ptr<Stream> stream;  // set: lands in pinned memory
    std::deque<Piece> pieces;
  };
  using Copies = std::unordered_map<uint64_t, Copy>;

  Copy* FindCopy(uint64_t transfer, Way way, bool* refused) LONGWIRE_REQUIRES(mutex_);
  // Releases the lock while the bytes are put away; `landing` keeps the copy meanwhile.
  bool ArrivedCopy(uint64_t transfer, Copy& copy, uint64_t offset, std::span<const std::byte> bytes,
                   Way way, uint64_t* credit) LONGWIRE_REQUIRES(mutex_);
  bool HasImage(uint64_t transfer, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  bool TakeWholeImage(uint64_t transfer, uint64_t bytes, std::vector<std::byte>* image)
      LONGWIRE_REQUIRES(mutex_);
  bool ArrivedOther(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes,
                    std::shared_ptr<TransferTarget>* target, uint64_t* credit)
      LONGWIRE_REQUIRES(mutex_);
  // Fills the piece with the bytes; without the lock.
  void PutAway(Stream* stream, std::span<const std::byte> bytes, Way way, Piece* piece);
  void Drop(Copy& copy, const Piece& piece, uint64_t* credit) LONGWIRE_REQUIRES(mutex_);
  void EraseIfDone(uint64_t transfer, const Copy& copy) LONGWIRE_REQUIRES(mutex_);

  Uses uses_;
  InFlightLimits limits_ = InFlightLimits::Of(InFlightLimits::kDefaultBytes);
  base::Mutex mutex_{base::ranks::kWorkerTransfers};
  Copies copies_ LONGWIRE_GUARDED_BY(mutex_);
  size_t early_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // copies that were not announced yet
  std::unordered_map<uint64_t, std::weak_ptr<TransferTarget>> targets_ LONGWIRE_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, std::vector<std::byte>> images_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t image_bytes_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool stopped_ LONGWIRE_GUARDED_BY(mutex_) = false;
  base::CondVar image_arrived_;
  uint64_t kept_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // bytes of pieces of copies
};

}  // namespace longwire::worker
