// The log thread: reads the up log, sorts its records into the streams' queues and issues from each
// queue the calls that may start. It waits for nothing but the log itself.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "server/worker/issue/deferred.h"
#include "server/worker/issue/executor.h"
#include "server/worker/issue/issuer.h"
#include "server/worker/issue/sorted.h"
#include "server/worker/issue/waiting_calls.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"
#include "wire/record.h"
#include "wire/rings/ring.h"
#include "wire/rings/spinning.h"

namespace longwire::worker {

class Completion;
class CurrentContext;
class DownWriter;
class Failures;
class Gates;
class Helpers;
class HostMemory;
class Journal;
class KeptStates;
class Memory;
class Spans;
class Swapping;
class Transfers;

class LogThread {
 public:
  struct Uses {
    Executor executor;
    Issuer& issuer;
    Deferred& deferred;
    Bookkeeping bookkeeping;
    const HandleTable<Stream>& streams;
    Gates& gates;
    Spans& spans;
    Memory& memory;
    KeptStates& states;
    Swapping& swapping;
    Transfers& transfers;
    Helpers& helpers;
    WaitingCalls& waiting;
    Journal& journal;
    HostMemory& host_memory;
    Completion& completion;
    CurrentContext& current_context;
    DownWriter& down;
    Failures& failures;
  };
  LogThread(Uses uses, std::shared_ptr<wire::RingMemory> up)
      : uses_(uses), up_(std::move(up)), streams_(uses.streams) {}
  ~LogThread() { Join(); }

  void Start();
  void Join();

  // For a move. While it is held it reads no further record, and goes on with those that it has
  // read; IsQuiet once none is left. Any thread.
  void Hold(bool hold);
  bool IsQuiet() const { return quiet_; }
  // While it is held: it has come to its border. What was read may still be under way.
  bool IsAtBorder() const { return at_border_; }
  // Before Start: reads on from the ring's position.
  void Reopen(const std::shared_ptr<wire::RingMemory>& up) { up_ = wire::RingConsumer(up); }

  // Log thread only. True if all records that were read are issued and the log has no more, unless
  // calls wait for memory.
  bool IsIdle();
  // Log thread only. What is there of the log and was not read.
  std::span<const std::byte> Unread() { return up_.Available(); }

 private:
  void Run();
  // Reads and sorts a bounded number of records. False when the session is over.
  bool ReadSome();
  uint64_t waiting_bytes() const { return uses_.issuer.waiting_bytes() + uses_.waiting.bytes(); }
  bool IsFull() const;
  // Tells from time to time what waits, for the tenant's sum.
  void CountWaiting();
  // True if the call is work before which a state has to be stored that was kept for the border.
  bool AwaitsStates(const wire::RecordHeader& header);
  // Issues launches at the log's head that need not be queued.
  Issuer::FromLog IssueAtOnce(const wire::RecordHeader& header, std::span<const std::byte> log);
  void Sort(const wire::RecordHeader& header, uint64_t position, std::span<const std::byte> bytes);
  static void FetchAhead(std::span<const std::byte> log);
  void TakeBytes(std::span<const std::byte> bytes);
  void SortOutsideStreams(QueuedCall call);
  void TellMemory(QueuedCall call);
  void RunOnHelper(uint32_t thread, QueuedCall call);
  void Wait();
  void WaitHeld();
  // As the ring's WaitBeyond, and stays awake first where the session may.
  bool WaitBeyond(uint64_t position, wire::Deadline deadline);

  Uses uses_;
  wire::RingConsumer up_;
  FoundLately<Stream> streams_;
  QueuedCall sorted_;     // the newest; a member, so that the memory of its arguments is reused
  uint64_t seen_ = 0;     // end of the log when it was read last
  uint64_t counted_ = 0;  // of what waits
  bool moved_ = false;    // something was read or issued since the last wait
  wire::SpinPrediction spin_{wire::AllowedCores()};
  std::atomic<bool> held_{false};
  std::atomic<bool> quiet_{false};
  std::atomic<bool> at_border_{false};
  std::thread thread_;
};

}  // namespace longwire::worker
