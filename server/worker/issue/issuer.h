// The streams' queues and the rules by which their calls are issued (log thread only):
//   - A stream has at most kMaxUnfinishedPerStream issued calls that are not known to be finished.
//   - A call of the legacy stream waits until the blocking streams of its context have issued all
//     calls that the log has before it. Calls of blocking streams wait for the legacy stream in the
//     same way.
//   - The end of a capture is issued after all captured calls before it, also those of other
//     streams. Nothing else orders them.
//   - A call returns kNotYet while it cannot be issued: a wait whose event record was not issued, a
//     launch whose function is being loaded, a copy without bytes or staging memory.
//   - A closed gate or a spent budget holds back calls that give the device work (gates.h).
//   - No call is issued past a map that waits for an unmap.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/worker/issue/executor.h"
#include "server/worker/issue/launch_run.h"
#include "server/worker/issue/sorted.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {

class CurrentContext;
class Failures;
class Gates;
class KeptStates;
class LaunchSamples;
class Spans;
class Timelines;

class Issuer {
 public:
  struct Uses {
    Executor executor;
    Bookkeeping bookkeeping;
    LaunchRun::Uses launches;
    Gates& gates;
    KeptStates& states;
    Spans& spans;
    LaunchSamples& samples;
    Timelines& timelines;
    CurrentContext& current_context;
    Failures& failures;
  };
  explicit Issuer(Uses uses) : uses_(uses), launches_(uses.launches) {}

  void Add(const std::shared_ptr<Stream>& stream);
  void Remove(const std::shared_ptr<Stream>& stream);
  void RemoveContext(uint32_t context);
  // Takes the call (CallQueue::Push).
  void Enqueue(const std::shared_ptr<Stream>& stream, QueuedCall& call);

  // Issues launches of the stream directly from the head of the log, which is at `position`, if
  // none of the stream's calls is queued.
  struct FromLog {
    int records = 0;
    size_t bytes = 0;  // of the log
  };
  FromLog IssueFromLog(const std::shared_ptr<Stream>& stream, std::span<const std::byte> log,
                       uint64_t position);

  // Issues what can be issued now. True if anything was.
  bool Pass();

  // Puts markers behind the issued calls that have none yet, of one context or of all.
  void MarkTouched(const Context* context = nullptr);
  // Puts a marker behind the stream's call at `position`, now or when it is issued.
  void MarkAt(Stream& stream, uint64_t position);

  // Puts a marker behind all issued calls of the stream. Its issue_mutex is held.
  void PlaceMarker(const std::shared_ptr<Stream>& stream);

  // The lowest position of queued calls of other streams that this stream's calls must not
  // overtake.
  uint64_t OthersTurn(const Stream& stream) const;

  // The lowest position of all queued calls; UINT64_MAX if none is queued.
  uint64_t LowestWaiting() const;
  bool anything_waits() const { return !waiting_.empty(); }
  // Whether calls of other streams are queued.
  bool OthersWait(const Stream& stream) const;
  // True if no call is queued and all issued calls have a marker.
  bool IsIdle() const;
  uint64_t waiting_bytes() const { return waiting_bytes_; }
  // Calls of streams behind this position are not issued.
  void SetBarrier(uint64_t position) { barrier_ = position; }
  // Work of the device behind this one is not. Whatever waits for work, or exchanges mirrored
  // memory, is.
  void SetWorkBarrier(uint64_t position) { work_barrier_ = position; }
  const std::vector<std::shared_ptr<Stream>>& streams() const { return streams_; }

 private:
  bool Run(const std::shared_ptr<Stream>& stream);
  // The locks under which calls are issued into a stream: the stream's own, and the context's if
  // the stream is ordered with the legacy stream. Which are held is only known at run time.
  class Locks {
   public:
    Locks(Issuer& issuer, Stream& stream) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS;
    ~Locks() LONGWIRE_NO_THREAD_SAFETY_ANALYSIS;
    Locks(const Locks&) = delete;
    Locks& operator=(const Locks&) = delete;

   private:
    base::Mutex& issue_;
    base::Mutex* legacy_ = nullptr;
  };
  void MarkNowOrLater(const std::shared_ptr<Stream>& stream);
  bool IssueAll(const std::shared_ptr<Stream>& stream);
  bool MayStart(const Stream& stream, const QueuedCall& head) const;
  // True if all captured calls below this position were issued.
  bool AllCaptured(uint64_t position) const;
  // A captured call passes the gates; that it is one is what the client claims.
  bool IsFalselyCaptured(const Stream& stream, const QueuedCall& head) const;
  // True if the head was issued or dropped, and leaves the queue.
  bool Issue(const std::shared_ptr<Stream>& stream, QueuedCall& head);
  // Begins a run with as many launches as the stream may issue now. False if it may issue none.
  bool BeginLaunches(const Stream& stream);
  // Issues the launches at the queue's head as a run. False if fewer than two can be in it.
  bool IssueLaunches(const std::shared_ptr<Stream>& stream);
  void Leave(Stream& stream);  // removes the queue's head
  void MarkIfDue(const std::shared_ptr<Stream>& stream);
  // Counts issued calls, from position `first` to `last`, that no marker follows yet.
  void CountUnmarked(Stream& stream, uint64_t first, uint64_t last, size_t calls);
  bool Give(const std::shared_ptr<Stream>& stream, QueuedCall& head);
  void CountInStream(Stream& stream, const QueuedCall& head);
  void CountIssued(Stream& stream, const QueuedCall& head);
  void FinishSample(Stream& stream, bool issued);
  void Drop(const std::shared_ptr<Stream>& stream, QueuedCall& head, CUresult why);

  Uses uses_;
  LaunchRun launches_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Stream>> waiting_;  // streams with waiting calls
  std::vector<std::shared_ptr<Stream>> touched_;  // streams with calls without a marker
  uint64_t waiting_bytes_ = 0;
  uint64_t barrier_ = UINT64_MAX, work_barrier_ = UINT64_MAX;
};

}  // namespace longwire::worker
