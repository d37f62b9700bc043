// The log thread: reads the up log, sorts its records into the streams' queues and issues from each
// queue what can be issued. It waits for nothing but the log itself.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "server/worker/deferred.h"
#include "server/worker/handle_table.h"
#include "server/worker/issuer.h"
#include "server/worker/objects.h"
#include "server/worker/sorted.h"
#include "wire/record.h"
#include "wire/ring.h"
#include "wire/spinning.h"

namespace longwire::worker {

class Session;

class LogThread {
 public:
  LogThread(Session& session, std::shared_ptr<wire::RingMemory> up);
  ~LogThread() { Join(); }

  void Start();
  void Join();

  // For handlers that run on the log thread.
  Issuer& issuer() { return issuer_; }
  Deferred& deferred() { return deferred_; }
  // Log thread: nothing is left of what was read, and nothing is there to be read; unless it waits
  // for memory.
  bool IsIdle();

 private:
  void Run();
  // Sorts what the log holds, up to a bound. False when the session is over.
  bool ReadSome();
  bool IsFull() const;
  // The launches at the log's head that need no place in a queue.
  Issuer::FromLog IssueAtOnce(const wire::RecordHeader& header, std::span<const std::byte> log);
  void Sort(const wire::RecordHeader& header, uint64_t position, std::span<const std::byte> bytes);
  static void FetchAhead(std::span<const std::byte> log);
  void TakeBytes(std::span<const std::byte> bytes);
  void SortOutsideStreams(QueuedCall call);
  void RunOnHelper(uint32_t thread, QueuedCall call);
  void Wait();

  Session& session_;
  Bookkeeping books_;
  wire::RingConsumer up_;
  Issuer issuer_;
  Deferred deferred_;
  FoundLately<Stream> streams_;
  QueuedCall sorted_;  // just now; kept for the memory of its arguments
  uint64_t seen_ = 0;  // end of the log at the last look
  wire::SpinPrediction spin_{wire::AllowedCores()};
  std::thread thread_;
};

// Decodes and runs one call on this thread, and answers it. Returns kNotYet if it must be tried
// again. `stream` is null for calls outside streams.
CUresult Execute(Session& session, QueuedCall& call, const std::shared_ptr<Stream>& stream);

// Answers a call that is not run at all.
void Refuse(Session& session, const QueuedCall& call, CUresult code);

}  // namespace longwire::worker
