// The progress of each stream: its markers in order, and the pinned page into which the device
// writes their tickets. The log thread adds markers, the completion thread takes those that were
// reached.
//
// A stream's issue_mutex is taken before the lock in here, under which nothing else is taken.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {

class Timelines {
 public:
  explicit Timelines(const DriverTable& driver) : driver_(driver) {}

  // Allocates the progress pages. A context must be current.
  CUresult Start();

  // Assigns a slot to the stream; false if all are in use.
  bool Attach(Stream& stream);

  // Puts a marker behind all issued calls of the stream, with the stream's collected actions. The
  // stream's issue_mutex is held and its context current. `in_stream` is false while no marker may
  // enter the stream (capture, a failed context): the marker then counts as reached as soon as the
  // one before it. So does a marker that the driver refuses: `refused` then reports the error
  // before the marker is seen as reached.
  void Mark(const std::shared_ptr<Stream>& stream, bool in_stream,
            const std::function<void(CUresult)>& refused);

  // Requests progress at `position`. Returns a position to report now, or 0.
  uint64_t Want(Stream& stream, uint64_t position);

  // True if all calls below `position` in these streams are finished. Log thread only.
  bool AllFinishedBelow(const std::vector<std::shared_ptr<Stream>>& streams, uint64_t position);
  bool Drained(Stream& stream);

  // The stream is destroyed: its slot is freed once its markers are done.
  void Detach(Stream& stream);

  // For a move: how far the stream has come, once all its calls are finished and what belongs to
  // them was sent; false before. And the same in the new worker, before anything is issued.
  bool ReadSettled(Stream& stream, uint64_t* settled);
  void RestoreSettled(Stream& stream, uint64_t settled);

  // For the completion thread.
  struct Reached {
    std::shared_ptr<Stream> stream;
    std::vector<Marker> markers;
    uint64_t position = 0;
    bool push = false;     // the progress was requested
    bool drained = false;  // no marker is left
  };
  // Waits until a stream has markers, or for Stop. False after Stop.
  bool WaitForWork();
  // Makes WaitForWork return once without work: some is about to come.
  void ExpectWork();
  // The markers reached in the watched streams since the last call.
  void Collect(std::vector<Reached>* reached);
  std::vector<std::shared_ptr<Stream>> Watched();
  bool anything_watched();
  // The position of the oldest call that is not known to be finished.
  uint64_t FirstUnfinished(Stream& stream);
  // All data that belongs to `position` was sent. True if its progress must be sent now; the
  // request for it is then removed.
  bool Settled(Stream& stream, uint64_t position, bool push);
  void Stop();

 private:
  // 64 Ki streams at 8 bytes; a page's slots are close together, so polling many stays cheap.
  static constexpr uint32_t kSlots = 1 << 16;

  void FreeSlot(const Stream& stream) LONGWIRE_REQUIRES(mutex_);
  void ReadSlots() LONGWIRE_REQUIRES(mutex_);
  bool IsReached(Stream& stream, const Marker& marker) LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  uint64_t* slots_ = nullptr;  // written by the device
  CUdeviceptr device_slots_ = 0;

  base::Mutex mutex_{base::ranks::kTimelines};
  base::CondVar changed_;
  std::vector<std::shared_ptr<Stream>> watched_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_slots_ LONGWIRE_GUARDED_BY(mutex_);
  uint32_t next_slot_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool write_value_missing_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool stop_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool expects_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::worker
