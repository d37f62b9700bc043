// The streams' queues and the rules by which their calls are issued (log thread only):
//   - a stream has at most kMaxUnfinishedPerStream issued calls that are not known to be finished;
//   - a legacy-stream call waits until the blocking streams of its context have issued everything
//     that the log has before it, and theirs wait for the legacy stream's likewise;
//   - a capture ends after what its other streams captured, which nothing may make it wait for;
//   - a call returns kNotYet while it cannot be issued: a wait whose record was not issued, a
//   launch whose
//     function is being loaded, a copy without bytes or staging;
//   - a closed gate or a spent budget holds back what would keep the device at work (gates.h);
//   - nothing is issued past a mapping that still has to wait for an unmapping.
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
class Timelines;

class Issuer {
 public:
  struct Uses {
    Executor executor;
    Bookkeeping books;
    LaunchRun::Uses launches;
    Gates& gates;
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

  // Launches of the stream that stand at the log's head, which is at `position`, go from there to
  // the driver, if none of the stream's calls waits before them.
  struct FromLog {
    int records = 0;
    size_t bytes = 0;  // of the log
  };
  FromLog IssueFromLog(const std::shared_ptr<Stream>& stream, std::span<const std::byte> log,
                       uint64_t position);

  // Issues what can be issued now. True if anything was.
  bool Pass();

  // Puts markers behind issued calls that have none yet; of one context, or of all.
  void MarkTouched(const Context* context = nullptr);
  // Puts one behind the stream's call there, now or when it is issued.
  void MarkAt(Stream& stream, uint64_t position);

  // Puts one behind what was issued into the stream. Its issue_mutex is held.
  void PlaceMarker(const std::shared_ptr<Stream>& stream);

  // The lowest position of queued calls of other streams that this stream's calls must not
  // overtake.
  uint64_t OthersTurn(const Stream& stream) const;

  // Of all calls that wait in queues the lowest position; UINT64_MAX if none waits.
  uint64_t LowestWaiting() const;
  bool anything_waits() const { return !waiting_.empty(); }
  // Nothing is queued, and what was issued has its marker.
  bool IsIdle() const;
  uint64_t waiting_bytes() const { return waiting_bytes_; }
  // Streams' calls behind this position are held back.
  void SetBarrier(uint64_t position) { barrier_ = position; }
  const std::vector<std::shared_ptr<Stream>>& streams() const { return streams_; }

 private:
  bool Run(const std::shared_ptr<Stream>& stream);
  // The locks under which calls are issued into a stream: its own, and its context's where it is
  // ordered with the legacy stream. Which of them are held is known at run time alone.
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
  // All captured calls below this position were issued.
  bool AllCaptured(uint64_t position) const;
  // True if the head is done with and leaves the queue.
  bool Issue(const std::shared_ptr<Stream>& stream, QueuedCall& head);
  // As many launches as the stream may have now begin to be gathered. False if it may have none.
  bool BeginLaunches(const Stream& stream);
  // Issues the launches at the queue's head together. False if there are not two that can be.
  bool IssueLaunches(const std::shared_ptr<Stream>& stream);
  void Leave(Stream& stream);  // the queue's head
  void MarkIfDue(const std::shared_ptr<Stream>& stream);
  // Calls that no marker follows yet, of these positions.
  void CountUnmarked(Stream& stream, uint64_t first, uint64_t last, size_t calls);
  void CountIssued(Stream& stream, const QueuedCall& head);
  void Drop(const std::shared_ptr<Stream>& stream, QueuedCall& head);

  Uses uses_;
  LaunchRun launches_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Stream>> waiting_;  // streams with waiting calls
  std::vector<std::shared_ptr<Stream>> touched_;  // streams with calls without a marker
  uint64_t waiting_bytes_ = 0;
  uint64_t barrier_ = UINT64_MAX;
};

}  // namespace longwire::worker
