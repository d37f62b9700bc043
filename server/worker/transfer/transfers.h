// Uploaded bytes that arrive before they are used: pieces of copies, module images, and bytes for
// graphs. While few bytes are stored, a piece is credited to the client when it arrives; else when
// it is used. So copies behind a blocked stream do not hold up other streams. Images are outside
// this window, since the client waits for the reply of each load; where the host's memory does not
// suffice for one, its bytes are dropped and its load is refused.
//
// Pieces come through the log, in order, or through lanes, in any order and even before the copy's
// record. If the copy is the next of its stream, its pieces are stored in pinned memory, where the
// device reads them; else in ordinary memory. Pieces in the shared segment stay there.
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
#include "server/worker/support/host_memory.h"
#include "server/worker/support/objects.h"
#include "server/worker/transfer/bridge_figures.h"
#include "server/worker/transfer/in_flight.h"
#include "server/worker/transfer/staging.h"

namespace longwire::worker {

// Memory of a graph's node, into which the bytes of a transfer are stored at each launch.
struct TransferTarget {
  std::byte* data = nullptr;
  uint64_t bytes = 0;
  std::atomic<uint64_t> received{0};  // bytes
};

class Transfers {
 public:
  // Functions of the session, which are called on any thread.
  struct Uses {
    std::function<void(uint64_t bytes)> credit;
    // Takes pinned memory for a copy in the stream. False if none is free.
    std::function<bool(Stream&, size_t bytes, StagingBlock*)> acquire;
    // `stream` is the copy's. It is nullptr while the record has not come or waits behind others.
    std::function<void(Stream* stream, const StagingBlock&)> release;
    // A copy may take bytes now, or drops them from now on (Land).
    std::function<void()> lands;
    HostMemory& host_memory;
    BridgeFigures& figures;
  };
  explicit Transfers(Uses uses) : uses_(std::move(uses)) {}
  // Before the session starts.
  void SetLimits(const InFlightLimits& limits) { limits_ = limits; }
  const InFlightLimits& limits() const { return limits_; }

  struct Piece {
    uint64_t offset = 0;
    size_t size = 0;
    size_t done = 0;      // number of `bytes` that were copied to the device already
    StagingBlock pinned;  // without memory: the data is in `bytes`
    std::vector<std::byte> bytes;
    bool credited = false;
    bool kept = true;                           // counts among the bytes that are kept
    BridgeFigures::Clock::time_point stored{};  // of a bridge's: when
  };

  // A copy of `bytes` bytes will use this transfer. False if the number is in use.
  bool ExpectCopy(uint64_t transfer, uint64_t bytes);
  // The copy is the next of its stream: pieces are stored in pinned memory from now on.
  void BeginLanding(uint64_t transfer, const std::shared_ptr<Stream>& stream);
  // Takes a piece; false if none has arrived. *wrong is set if the piece is not part of the copy,
  // or the copy is unknown.
  bool Take(uint64_t transfer, Piece* piece, bool* wrong);
  void PutBack(uint64_t transfer, Piece piece);
  // The piece's bytes were copied to the device, or another owner has taken its memory.
  void Used(const Piece& piece);
  // The copy is done or was dropped: later pieces of it are only credited.
  void FinishCopy(uint64_t transfer);

  // New bytes for a copy that may be revised until its stream reaches it. False if they are outside
  // the copy.
  bool Revise(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes);
  // Discards the bytes that came: the copy's bytes must be requested again.
  void PullInstead(uint64_t transfer);
  // The stream has reached the copy: its bytes are final. True if they must be requested.
  bool Settle(uint64_t transfer);

  // Bytes of the transfer are stored in the target's memory from now on.
  void Attach(uint64_t transfer, const std::shared_ptr<TransferTarget>& target);
  void Detach(uint64_t transfer);

  // The path by which bytes came. A lane carries the bytes of a piece, or the offset of its slot in
  // the segment (host_segment.h), where the piece stays.
  enum class Way { kLog, kLane, kSlot, kBridge };
  // False if the client violates the protocol (too many bytes, outside the range).
  bool Arrived(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes, Way way);
  // Bytes that come over a bridge and need no credit: they go to pinned memory, once their copy is
  // the next of its stream. kNotYet: it is not, or has a window's bytes there; `lands`, or freed
  // memory, may change that. kWrong: they are outside the copy.
  enum class Landed { kTaken, kNotYet, kWrong };
  Landed Land(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes);

  // A module image, with kPadding zeros behind its bytes.
  static constexpr size_t kPadding = 64;
  struct Image {
    std::vector<std::byte> bytes;
    HostMemory::Share share;  // of kImages
  };
  // An image of this size will be sent; `share` has as much.
  void ExpectImage(uint64_t transfer, uint64_t bytes, HostMemory::Share share);
  // Takes a complete image. Any thread. CUDA_ERROR_INVALID_IMAGE if it is not there or has another
  // size, CUDA_ERROR_OUT_OF_MEMORY if there was no memory for it.
  CUresult TakeImage(uint64_t transfer, uint64_t bytes, Image* image);
  // The same, but waits until the image has arrived, or the session is over.
  CUresult WaitForImage(uint64_t transfer, uint64_t bytes, Image* image);
  // True if no copy or image has bytes to come, or bytes that came for it.
  bool IsIdle();
  // The session is over: ends all waits.
  void Stop();

 private:
  struct Copy {
    uint64_t bytes = 0;
    uint64_t arrived = 0;
    bool announced = false;  // its record was read
    bool finished = false;
    bool settled = false;            // its stream has reached it
    bool pulled = false;             // its bytes must be requested
    uint32_t landing = 0;            // pieces that are being stored now
    std::shared_ptr<Stream> stream;  // not null: pieces are stored in pinned memory
    std::deque<Piece> pieces;
  };
  using Copies = std::unordered_map<uint64_t, Copy>;

  Copy* FindCopy(uint64_t transfer, Way way, bool* refused) LONGWIRE_REQUIRES(mutex_);
  // Releases the lock while it stores the bytes; `landing` keeps the copy meanwhile.
  bool ArrivedCopy(uint64_t transfer, Copy& copy, uint64_t offset, std::span<const std::byte> bytes,
                   Way way, uint64_t* credit) LONGWIRE_REQUIRES(mutex_);
  // Where bytes can land: with a stream in which they may.
  Landed MayLand(uint64_t transfer, uint64_t offset, uint64_t bytes,
                 std::shared_ptr<Stream>* stream) LONGWIRE_EXCLUDES(mutex_);
  void Landing(uint64_t transfer, Piece piece) LONGWIRE_EXCLUDES(mutex_);
  void Note(size_t bytes, Piece* piece);  // of a bridge, for the figures
  struct ArrivingImage {
    Image image;
    bool refused = false;  // there is no memory for it
  };
  bool HasImage(uint64_t transfer, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  CUresult TakeWholeImage(uint64_t transfer, uint64_t bytes, Image* image)
      LONGWIRE_REQUIRES(mutex_);
  // False if the client violates the protocol.
  bool ArrivedImage(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes)
      LONGWIRE_REQUIRES(mutex_);
  void Keep(int64_t bytes) LONGWIRE_REQUIRES(mutex_);
  bool ArrivedOther(uint64_t transfer, uint64_t offset, std::span<const std::byte> bytes,
                    std::shared_ptr<TransferTarget>* target, uint64_t* credit)
      LONGWIRE_REQUIRES(mutex_);
  // Stores the bytes in the piece, without the lock.
  void PutAway(Stream* stream, std::span<const std::byte> bytes, Way way, Piece* piece);
  void Drop(Copy& copy, const Piece& piece, uint64_t* credit) LONGWIRE_REQUIRES(mutex_);
  void EraseIfDone(uint64_t transfer, const Copy& copy) LONGWIRE_REQUIRES(mutex_);

  Uses uses_;
  InFlightLimits limits_ = InFlightLimits::Of(InFlightLimits::kDefaultBytes);
  base::Mutex mutex_{base::ranks::kWorkerTransfers};
  Copies copies_ LONGWIRE_GUARDED_BY(mutex_);
  size_t early_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // copies that were not announced yet
  std::unordered_map<uint64_t, std::weak_ptr<TransferTarget>> targets_ LONGWIRE_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, ArrivingImage> images_ LONGWIRE_GUARDED_BY(mutex_);
  bool stopped_ LONGWIRE_GUARDED_BY(mutex_) = false;
  base::CondVar image_arrived_;
  uint64_t kept_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // bytes of pieces of copies
};

}  // namespace longwire::worker
