// The session: the log of calls going up, and what comes down.
//
// Three verbs say what a call site does: Submit queues a call and returns its position at once,
// CallAndWait waits for the worker's reply, CallThen queues and names what runs with the reply.
//
// Every thread appends under one short lock, so the log's order is the order in which calls were
// made, also between threads. What comes down is read by whoever waits (no second thread has to be
// woken for it) and by the receiver thread while nobody does.
//
// One call may be kept back (Keep): it stands in the log before everything that could tell.
//
// The pump, which is the right to read the down ring, is not a lock: a thread that takes it holds
// no ranked mutex (docs/threads.md), because what it reads may let it wait.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/socket_watch.h"
#include "client-shim/session/transfers.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/function_ref.h"
#include "longwire/call_ids.h"
#include "wire/buffer.h"
#include "wire/limits.h"
#include "wire/open.h"
#include "wire/record.h"
#include "wire/ring.h"
#include "wire/socket.h"
#include "wire/spinning.h"

namespace longwire::shim {

// The code with which this process's session ended, 0 while it lives. The one place that says so:
// waits end by it, and no call but those that need no session returns success against it (entry.h).
inline std::atomic<int> session_over{0};

// Called before a record of work goes up, with its stream, while somebody has to send something
// before it (speculative_uploads.h); null else.
using BeforeWork = void (*)(const Stream* stream);
inline std::atomic<BeforeWork> before_work{nullptr};
inline void CallBeforeWork(const Stream* stream) {
  BeforeWork call = before_work.load(std::memory_order_acquire);
  if (call != nullptr) call(stream);
}

// What a record's header says besides the call.
struct Where {
  uint32_t context = 0;
  Stream* stream = nullptr;
  uint16_t flags = 0;  // wire::RecordFlags
};

// A reply, with the bytes that its views point into.
template <class Call>
struct Answer {
  CUresult code = CUDA_SUCCESS;
  typename Call::Reply reply;
  std::vector<std::byte> bytes;
};

class Lanes;
struct LaneRings {
  std::shared_ptr<wire::RingMemory> up, down;
};

// What opening hands over.
struct SessionParts {
  std::shared_ptr<wire::RingMemory> up;
  std::shared_ptr<wire::RingMemory> down;
  std::vector<LaneRings> lanes;
  wire::Descriptor socket;   // stays open as long as the session lives; may be none in tests
  wire::Descriptor segment;  // for pinned memory (pinned_segment.h), if reply.segment_bytes says so
  wire::OpenReply reply;
};

// Of uploads that are offered by their digest (image_upload.h).
struct UploadCounts {
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> known{0};  // that the server had
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> bytes_sent{0};
  // What the server said of the last one: the next one's fate is mostly the same, since a program
  // sends what it sent in its last run, or everything for the first time.
  std::atomic<wire::ImageKnowledge> last_said{wire::ImageKnowledge::kKnown};
};

// Counts for LONGWIRE_TRACE=summary and the benches.
struct SessionCounts {
  std::atomic<uint64_t> calls{0};                                          // records appended
  std::atomic<uint64_t> round_trips{0};                                    // replies waited for
  std::array<std::atomic<uint32_t>, wire::kCallNumbers> round_trips_of{};  // the same, by CallId
  std::atomic<uint64_t> waits{0};       // waits for progress that was not there yet
  std::atomic<uint64_t> uploaded{0};    // bytes
  std::atomic<uint64_t> staged{0};      // bytes that went up by slots
  std::atomic<uint64_t> downloaded{0};  // bytes
  UploadCounts images;                  // of modules, loaded or linked
  UploadCounts kept;                    // copies whose bytes the server may keep
  std::atomic<uint64_t> remaps{0};      // copies that were made by mapping
  std::atomic<uint64_t> remapped{0};    // bytes of them
};

class Session {
 public:
  static constexpr uint64_t kNoPosition = UINT64_MAX;

  explicit Session(SessionParts parts);
  // Starts the threads that the session needs always.
  bool Start();

  // Queues the call; its position, or kNoPosition when the session is over.
  template <class Call>
  uint64_t Submit(const Where& where, const Call& call, size_t bound = kUsualBound) {
    return AppendRecord(
        where, static_cast<uint16_t>(Call::kId), bound,
        [&](wire::Writer& writer) { call.Encode(writer); }, nullptr, kBehindAny);
  }

  // The same, if the newest call of the stream is the one at `last`; if not, kNoPosition.
  template <class Call>
  uint64_t SubmitBehind(const Where& where, const Call& call, uint64_t last) {
    return AppendRecord(
        where, static_cast<uint16_t>(Call::kId), kUsualBound,
        [&](wire::Writer& writer) { call.Encode(writer); }, nullptr, last);
  }

  template <class Call>
  Answer<Call> CallAndWait(const Where& where, const Call& call, size_t bound = kUsualBound) {
    Answer<Call> answer;
    answer.code = AskAndWait(
        where, static_cast<uint16_t>(Call::kId), bound,
        [&](wire::Writer& writer) { call.Encode(writer); }, &answer.bytes);
    if (answer.code == CUDA_SUCCESS) {
      wire::Reader reader(answer.bytes);
      if (answer.reply.Decode(reader) != wire::WireResult::kOk) answer.code = BadReply();
    }
    return answer;
  }

  // `then` runs with the reply's code and payload on the thread that reads it; it must not wait.
  using Then = std::function<void(CUresult, std::span<const std::byte>)>;
  template <class Call>
  uint64_t CallThen(const Where& where, const Call& call, Then then) {
    auto pending = std::make_unique<PendingReply>();
    pending->then = std::move(then);
    return AppendRecord(
        where, static_cast<uint16_t>(Call::kId), kUsualBound,
        [&](wire::Writer& writer) { call.Encode(writer); }, pending.release(), kBehindAny);
  }

  // Keeps a call back, unless a record of work was appended behind `work`: it is appended before
  // the next record of work, or by AppendKept, or never if another call takes its place. `ended`
  // hears under the log's lock where it went, or kNoPosition. False: it is not kept.
  using Ended = std::function<void(uint64_t)>;
  template <class Call>
  bool Keep(const Where& where, const Call& call, uint64_t work, uint64_t key, Ended ended) {
    std::vector<std::byte> arguments(call.EncodedBytes());
    wire::Writer writer(arguments);
    call.Encode(writer);
    return KeepRecord(
        {where, static_cast<uint16_t>(Call::kId), 0, key, std::move(arguments), std::move(ended)},
        work);
  }
  // Appended instead of the call that was kept under this key. kNoPosition: that is not kept.
  template <class Call>
  uint64_t SubmitInstead(uint64_t key, const Call& call, size_t bound) {
    return AppendInstead(key, static_cast<uint16_t>(Call::kId), bound,
                         [&](wire::Writer& writer) { call.Encode(writer); });
  }
  void AppendKept() LONGWIRE_EXCLUDES(log_mutex_);
  bool keeps() const { return keeps_.load(std::memory_order_acquire); }
  // The position of the newest record of work: which may use device memory, or tell the program of
  // work that did.
  uint64_t newest_work() const { return newest_work_.load(std::memory_order_acquire); }

  // The untyped forms, for generated code.
  using Encode = FunctionRef<void(wire::Writer&)>;
  CUresult AskAndWait(const Where& where, uint16_t call, size_t bound, Encode encode,
                      std::vector<std::byte>* payload);
  uint64_t AppendEncoded(const Where& where, uint16_t call, Encode encode,
                         size_t bound = kUsualBound) {
    return AppendRecord(where, call, bound, encode, nullptr, kBehindAny);
  }

  // Waits until `done` (evaluated under no lock but an internal one; it must be quick and take no
  // lock), the session is over or the deadline passed; true if done.
  [[nodiscard]] bool WaitUntil(FunctionRef<bool()> done,
                               wire::Deadline deadline = wire::Deadline::max())
      LONGWIRE_EXCLUDES(state_mutex_);

  // Takes in what has come, unless somebody is doing so: for programs that poll.
  void ReadWithoutWaiting() LONGWIRE_EXCLUDES(state_mutex_);

  // Progress of streams.
  void AddStream(Stream* stream) LONGWIRE_EXCLUDES(state_mutex_);
  // nullptr if there is none.
  Stream* FindStreamById(uint64_t id) LONGWIRE_EXCLUDES(state_mutex_);
  // When it was destroyed; it stays until it is idle.
  void ForgetStream(Stream* stream) LONGWIRE_EXCLUDES(state_mutex_);

  // Transfers of bytes.
  Transfers& transfers() { return transfers_; }
  Lanes& lanes() { return *lanes_; }
  // They stay; set before the session starts.
  void SetLanes(Lanes* lanes) { lanes_ = lanes; }
  uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // CUDA_SUCCESS, or what every call returns because the session is over.
  static CUresult over() {
    return static_cast<CUresult>(session_over.load(std::memory_order_acquire));
  }
  // What a call returns whose record could not be queued: never success, as over() alone may be. A
  // session that lives has refused a record that no ring can hold.
  static CUresult NotQueued() { return over() != CUDA_SUCCESS ? over() : CUDA_ERROR_INVALID_VALUE; }
  static CUresult Queued(uint64_t position) {
    return position == kNoPosition ? NotQueued() : CUDA_SUCCESS;
  }
  // What it returns whose bytes could not be sent. Their way may end a moment before the session
  // does.
  static CUresult NotSent() { return over() != CUDA_SUCCESS ? over() : CUDA_ERROR_LAUNCH_FAILED; }
  // Ends the session for this process; the sentence is printed once.
  void End(CUresult code, const std::string& sentence) LONGWIRE_EXCLUDES(state_mutex_);
  // Called then, once; set at start.
  void CallAtEnd(void (*at_end)()) { at_end_ = at_end; }

  // Prints what the device printed up to now.
  void FlushText();
  // The same on standard error, which has no buffer: whoever reads the log may do it.
  void FlushErrorText();

  const wire::OpenReply& opened() const { return opened_; }
  SessionCounts& counts() { return counts_; }
  void WakeWaiters() LONGWIRE_EXCLUDES(state_mutex_);

 private:
  static constexpr size_t kUsualBound = 1024;         // bytes; a longer record is encoded again
  static constexpr uint64_t kBehindAny = UINT64_MAX;  // instead of a position

  struct PendingReply {
    bool done = false;  // under state_mutex_
    CUresult code = CUDA_SUCCESS;
    std::vector<std::byte>* payload = nullptr;
    Then then;  // set: the record is owned by the table
  };

  // A call that is not in the log yet.
  struct Kept {
    Where where;
    uint16_t call = 0;
    uint32_t thread = 0;
    uint64_t key = 0;
    std::vector<std::byte> arguments;
    Ended ended;
  };

  uint64_t AppendRecord(const Where& where, uint16_t call, size_t bound, Encode encode,
                        PendingReply* reply, uint64_t behind) LONGWIRE_EXCLUDES(log_mutex_);
  // Mappings and their ends are of other memory than what a kept call is about: that is in use.
  static bool IsWork(uint16_t call) { return !MayPassDeferred(static_cast<CallId>(call)); }
  static void AskForKept(Stream* stream);
  struct Header {
    const Where& where;
    uint16_t call = 0;
    uint32_t thread = 0;
  };
  uint64_t Put(const Header& of, size_t bound, Encode encode, PendingReply* reply)
      LONGWIRE_REQUIRES(log_mutex_);
  // The stream of what was kept, retained; nullptr if nothing was.
  Stream* PutKept() LONGWIRE_REQUIRES(log_mutex_);
  Kept TakeKept() LONGWIRE_REQUIRES(log_mutex_);
  bool KeepRecord(Kept kept, uint64_t work) LONGWIRE_EXCLUDES(log_mutex_);
  uint64_t AppendInstead(uint64_t key, uint16_t call, size_t bound, Encode encode)
      LONGWIRE_EXCLUDES(log_mutex_);
  CUresult BadReply();

  // The pump; see receiver.cc.
  void ReceiverLoop();
  void Rest();
  void EndAsTheServerSays();
  void PumpForAWaiter(wire::Deadline deadline);
  void Pump(std::chrono::nanoseconds spin, wire::Deadline deadline);
  bool HasLanded(const wire::DownHeader& header, std::span<const std::byte> payload,
                 wire::Deadline deadline);
  bool HandleRecord(const wire::DownHeader& header, std::span<const std::byte> payload);
  bool OnReply(const wire::DownHeader& header, std::span<const std::byte> payload);
  bool OnProgress(const wire::DownHeader& header, wire::Reader& reader);
  bool OnError(const wire::DownHeader& header, wire::Reader& reader);

  base::Mutex log_mutex_{base::ranks::kSessionLog};
  wire::RingProducer up_ LONGWIRE_GUARDED_BY(log_mutex_);
  wire::RingMemory& up_memory_;  // that of up_: anyone may close it or wake the other side
  Kept kept_ LONGWIRE_GUARDED_BY(log_mutex_);  // there is one if keeps_
  std::atomic<bool> keeps_{false};
  std::atomic<uint64_t> newest_work_{0};

  wire::RingConsumer down_;    // by the pump's owner
  uint64_t poked_at_ = 0;      // by the pump's owner: released position at the last acknowledgement
  wire::SpinPrediction spin_;  // by the pump's owner: waits for answers

  base::Mutex state_mutex_{base::ranks::kSessionState};
  base::CondVar state_changed_;
  base::CondVar receiver_wake_;
  bool pump_taken_ LONGWIRE_GUARDED_BY(state_mutex_) = false;
  bool receiver_pumps_ LONGWIRE_GUARDED_BY(state_mutex_) = false;
  bool receiver_sleeps_ LONGWIRE_GUARDED_BY(state_mutex_) = false;
  uint32_t waiters_ LONGWIRE_GUARDED_BY(state_mutex_) = 0;
  uint64_t waits_begun_ LONGWIRE_GUARDED_BY(state_mutex_) = 0;
  // By position, and by id.
  std::unordered_map<uint64_t, PendingReply*> replies_ LONGWIRE_GUARDED_BY(state_mutex_);
  std::unordered_map<uint64_t, Stream*> streams_ LONGWIRE_GUARDED_BY(state_mutex_);
  std::string text_ LONGWIRE_GUARDED_BY(state_mutex_);
  std::string error_text_ LONGWIRE_GUARDED_BY(state_mutex_);

  Transfers transfers_;
  std::atomic<uint64_t> next_id_{1};
  wire::Descriptor socket_;  // until the session starts
  SocketWatch watch_;
  wire::OpenReply opened_;
  SessionCounts counts_;
  void (*at_end_)() = nullptr;  // written before the session starts
  Lanes* lanes_ = nullptr;
};

// The one session of this process. Only after a successful cuInit.
Session& TheSession();
// Makes it that one, before the process's state says that it is ready.
void AdoptSession(Session* session);

}  // namespace longwire::shim
