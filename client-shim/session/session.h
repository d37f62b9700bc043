// The client's session: the up log of calls, and the down log of replies and messages.
//
// There are three ways to make a call. Submit queues it and returns its position at once.
// CallAndWait waits for the worker's reply. CallThen queues it, and runs a function when the reply
// arrives.
//
// Every thread appends under one short lock, so the log has the calls in the order in which they
// were made, also by different threads. The down log is read by a thread that waits, so that no
// other thread has to wake it, and by the receiver thread while no thread waits.
//
// One call may be deferred (Defer). It is appended before any call that could observe the
// difference.
//
// The pump, which is the right to read the down ring, is not a lock: a thread that takes it holds
// no ranked mutex (docs/threads.md), because handling a record may make it wait.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/session/socket_watch.h"
#include "client-shim/session/stream_ends.h"
#include "client-shim/session/transfers.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/function_ref.h"
#include "longwire/call_ids.h"
#include "wire/buffer.h"
#include "wire/limits.h"
#include "wire/open.h"
#include "wire/places.h"
#include "wire/record.h"
#include "wire/rings/ring.h"
#include "wire/rings/spinning.h"
#include "wire/socket.h"

namespace longwire::shim {

// The code with which this process's sessions ended; 0 while one lives. Waits end when it is set,
// and afterwards only calls that need no session return success (entry.h).
inline std::atomic<int> session_over{0};

// Called with the stream before a record of work is appended, if something has to be sent before it
// (speculative_uploads.h); else null.
using BeforeWork = void (*)(const Stream* stream);
inline std::atomic<BeforeWork> before_work{nullptr};
inline void CallBeforeWork(const Stream* stream) {
  BeforeWork call = before_work.load(std::memory_order_acquire);
  if (call != nullptr) call(stream);
}

class ClientSession;

// The fields of a record's header besides the call, and the server that the record goes to.
struct Where {
  uint32_t context = 0;
  Stream* stream = nullptr;
  uint16_t flags = 0;                // wire::RecordFlags
  ClientSession* session = nullptr;  // for who passes a Where on; a session does not look at it
};

// A reply, and the bytes into which its views point.
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

// The parts of a session that OpenSession returns.
struct SessionParts {
  std::shared_ptr<wire::RingMemory> up;
  std::shared_ptr<wire::RingMemory> down;
  std::vector<LaneRings> lanes;
  wire::Descriptor socket;       // stays open as long as the session lives; may be none in tests
  SocketWatch::Renewal renewal;  // of the socket
  wire::Descriptor segment;  // for pinned memory (pinned_segment.h), if reply.segment_bytes says so
  wire::OpenReply reply;
  int server = 0;    // its place among the program's servers
  std::string name;  // of the server, where there are several; else empty
  // Instead of a session: where a pool has placed the program's.
  std::vector<wire::Place> places;
};

// Counts of uploads that are offered by their digest (image_upload.h).
struct UploadCounts {
  std::atomic<uint64_t> number{0};
  std::atomic<uint64_t> known{0};  // those that the server had
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> bytes_sent{0};
  // The server's answer for the last one. The next one's is mostly the same: a program uploads
  // either what it uploaded in its last run, or everything for the first time.
  std::atomic<wire::ImageKnowledge> last_said{wire::ImageKnowledge::kKnown};
};

// Counts for LONGWIRE_TRACE=summary and the benches.
struct SessionCounts {
  std::atomic<uint64_t> calls{0};                                          // records appended
  std::atomic<uint64_t> round_trips{0};                                    // replies waited for
  std::array<std::atomic<uint32_t>, wire::kCallNumbers> round_trips_of{};  // the same, by CallId
  std::atomic<uint64_t> waits{0};       // waits for progress that was not there yet
  std::atomic<uint64_t> uploaded{0};    // bytes
  std::atomic<uint64_t> staged{0};      // uploaded bytes that went through slots
  std::atomic<uint64_t> downloaded{0};  // bytes
  UploadCounts images;                  // of modules, loaded or linked
  UploadCounts cached;                  // copies whose bytes the server may cache
  std::atomic<uint64_t> remaps{0};      // copies that became remaps
  std::atomic<uint64_t> remapped{0};    // their bytes
};

class ClientSession {
 public:
  static constexpr uint64_t kNoPosition = UINT64_MAX;

  explicit ClientSession(SessionParts parts);
  // Starts the threads that every session needs.
  bool Start();

  // Queues the call. Returns its position, or kNoPosition if the session is over.
  template <class Call>
  uint64_t Submit(const Where& where, const Call& call, size_t bound = kUsualBound) {
    return AppendRecord(
        where, static_cast<uint16_t>(Call::kId), bound,
        [&](wire::Writer& writer) { call.Encode(writer); }, nullptr, kBehindAny);
  }

  // The same, if the stream's newest call is the one at `last`; else kNoPosition.
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

  // The same for a call whose answer has to be there before what builds on it: AskAndWait and
  // AwaitAnswers wait for it. Of several threads one at a time makes such calls, as the worker
  // keeps the order of one thread's calls only.
  template <class Call>
  uint64_t CallAhead(const Where& where, const Call& call, Then then) {
    BeginAhead();
    return CallThen(
        where, call,
        [this, then = std::move(then)](CUresult code, std::span<const std::byte> reply) {
          then(code, reply);
          EndAhead();
        });
  }
  // Waits for the answers to all calls that were made ahead.
  void AwaitAnswers() {
    if (__builtin_expect(ahead_.load(std::memory_order_acquire) != 0, 0)) AwaitAhead();
  }

  // A number that is another one after each call that makes or changes an object of the worker and
  // is waited for; but not after changes of executables.
  static uint64_t changes() { return changes_.load(std::memory_order_acquire); }
  static void NoteChange() { ++changes_; }

  // Defers a call. False if a record of work was already appended behind `work`. The call is
  // appended before the next record of work or by AppendDeferred, unless SubmitInstead replaces it.
  // `ended` is called under the log's lock with the call's position, or with kNoPosition if it was
  // replaced.
  using Ended = std::function<void(uint64_t)>;
  template <class Call>
  bool Defer(const Where& where, const Call& call, uint64_t work, uint64_t key, Ended ended) {
    std::vector<std::byte> arguments(call.EncodedBytes());
    wire::Writer writer(arguments);
    call.Encode(writer);
    return DeferRecord(
        {where, static_cast<uint16_t>(Call::kId), 0, key, std::move(arguments), std::move(ended)},
        work);
  }
  // Appends this call instead of the call that was deferred under `key`. kNoPosition if that is not
  // deferred any more.
  template <class Call>
  uint64_t SubmitInstead(uint64_t key, const Call& call, size_t bound) {
    return AppendInstead(key, static_cast<uint16_t>(Call::kId), bound,
                         [&](wire::Writer& writer) { call.Encode(writer); });
  }
  void AppendDeferred() LONGWIRE_EXCLUDES(log_mutex_);
  bool has_deferred() const { return has_deferred_.load(std::memory_order_acquire); }
  // The position of the newest record of work. That is a call which may use device memory, or by
  // which the program may observe work that did.
  uint64_t newest_work() const { return newest_work_.load(std::memory_order_acquire); }

  // The untyped forms, for generated code.
  using Encode = FunctionRef<void(wire::Writer&)>;
  CUresult AskAndWait(const Where& where, uint16_t call, size_t bound, Encode encode,
                      std::vector<std::byte>* payload);
  uint64_t AppendEncoded(const Where& where, uint16_t call, Encode encode,
                         size_t bound = kUsualBound) {
    return AppendRecord(where, call, bound, encode, nullptr, kBehindAny);
  }

  // Bytes of the log that the server has still to take, as far as it has said.
  uint64_t log_backlog() const { return up_memory_.kept(); }

  // Waits until `done` (evaluated under no lock but an internal one; it must be quick and take no
  // lock), the session is over or the deadline passed; true if done. It counts as a wait of the
  // program, or does not.
  enum class Counts { kYes, kNo };
  [[nodiscard]] bool WaitUntil(FunctionRef<bool()> done,
                               wire::Deadline deadline = wire::Deadline::max(),
                               Counts counts = Counts::kYes) LONGWIRE_EXCLUDES(state_mutex_);

  // Handles the records that have arrived, unless another thread does. For programs that poll.
  void ReadWithoutWaiting() LONGWIRE_EXCLUDES(state_mutex_);

  // The ending comes when the worker reports the call at `position`; at once, if it was not queued.
  void EndsWith(Stream* stream, uint64_t position, const Ending& ending);
  // The call at `position`, and all before it, has finished without the worker's word. Nothing
  // where the stream's context has failed.
  void NoteFinished(Stream* stream, uint64_t position) LONGWIRE_EXCLUDES(state_mutex_);
  // Progress of streams.
  void AddStream(Stream* stream) LONGWIRE_EXCLUDES(state_mutex_);
  // nullptr if there is none.
  Stream* FindStreamById(uint64_t id) LONGWIRE_EXCLUDES(state_mutex_);
  // Called when the stream was destroyed; it stays in the table until it is idle.
  void ForgetStream(Stream* stream) LONGWIRE_EXCLUDES(state_mutex_);

  // Whether the client has given out the number: only these come down.
  static bool HasGiven(uint64_t id) { return id < next_id_.load(std::memory_order_acquire); }
  // Ends the session: the server has sent what no server may send. `what` goes on "the server …".
  CUresult Distrust(const std::string& what);

  // Transfers of bytes.
  Transfers& transfers() { return transfers_; }
  Lanes& lanes() { return *lanes_; }
  // Called before the session starts; they outlive the session.
  void SetLanes(Lanes* lanes) { lanes_ = lanes; }
  static uint64_t NewId() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  // CUDA_SUCCESS while this session lives; then the error of all that needs it.
  // Waits for the sentence of a session that is at its end, for a program that exits at once.
  void SayWhyEnded();
  CUresult ended() const { return static_cast<CUresult>(ended_.load(std::memory_order_acquire)); }
  // CUDA_SUCCESS while any session lives; then the error that every call returns.
  static CUresult over() {
    return static_cast<CUresult>(session_over.load(std::memory_order_acquire));
  }
  // The error of a call whose record could not be queued. Unlike over() it is never success: a live
  // session refuses a record that no ring can hold.
  static CUresult NotQueued() {
    if (over() != CUDA_SUCCESS) return over();
    return any_ended_.load() ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_INVALID_VALUE;
  }
  static CUresult Queued(uint64_t position) {
    return position == kNoPosition ? NotQueued() : CUDA_SUCCESS;
  }
  // The error of a call whose bytes could not be sent. A lane may be closed a moment before the
  // session is.
  static CUresult NotSent() { return over() != CUDA_SUCCESS ? over() : CUDA_ERROR_LAUNCH_FAILED; }
  // Ends the session for this process and prints the message, once. Of several servers the others
  // go on: the contexts of this one fail.
  void End(CUresult code, const std::string& sentence) LONGWIRE_EXCLUDES(state_mutex_);
  // Sets the function that End calls once; `last`: no other session lives. Called before the
  // session starts.
  using AtEnd = void (*)(ClientSession& session, CUresult code, bool last);
  void CallAtEnd(AtEnd at_end) { at_end_ = at_end; }

  // Prints the text that the device has printed up to now.
  void FlushText();
  // The same for standard error, which has no buffer: the thread that reads the log may call it.
  void FlushErrorText();

  int server() const { return server_; }
  const std::string& name() const { return name_; }
  const wire::OpenReply& opened() const { return opened_; }
  SessionCounts& counts() { return counts_; }
  // Bytes sent that the worker has not taken yet. Changed by senders and by whoever reads credits.
  std::atomic<uint64_t>& uploads_under_way() { return uploads_under_way_; }
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

  // The call that is not in the log yet.
  struct DeferredCall {
    Where where;
    uint16_t call = 0;
    uint32_t thread = 0;
    uint64_t key = 0;
    std::vector<std::byte> arguments;
    Ended ended;
  };

  uint64_t AppendRecord(const Where& where, uint16_t call, size_t bound, Encode encode,
                        PendingReply* reply, uint64_t behind) LONGWIRE_EXCLUDES(log_mutex_);
  // False for maps and unmaps: the memory of a deferred call is in use, so they concern other
  // memory.
  static bool IsWork(uint16_t call) { return !MayPassDeferred(static_cast<CallId>(call)); }
  static void AskForDeferred(Stream* stream);
  struct Header {
    const Where& where;
    uint16_t call = 0;
    uint32_t thread = 0;
  };
  uint64_t Put(const Header& of, size_t bound, Encode encode, PendingReply* reply)
      LONGWIRE_REQUIRES(log_mutex_);
  // Tells how long an earlier round trip took, if that was measured.
  void PutRoundTrip() LONGWIRE_REQUIRES(log_mutex_);
  static void Trace(const Header& of, uint64_t stream, uint64_t position,
                    std::span<const std::byte> arguments);
  // Appends the deferred call. Returns its stream, retained; nullptr if there was none.
  Stream* PutDeferred() LONGWIRE_REQUIRES(log_mutex_);
  DeferredCall TakeDeferred() LONGWIRE_REQUIRES(log_mutex_);
  bool DeferRecord(DeferredCall deferred, uint64_t work) LONGWIRE_EXCLUDES(log_mutex_);
  uint64_t AppendInstead(uint64_t key, uint16_t call, size_t bound, Encode encode)
      LONGWIRE_EXCLUDES(log_mutex_);
  CUresult BadReply();
  // calls_ahead.cc
  void BeginAhead() LONGWIRE_EXCLUDES(state_mutex_);
  void EndAhead() LONGWIRE_EXCLUDES(state_mutex_);
  void AwaitAhead() LONGWIRE_EXCLUDES(state_mutex_);
  // The worker runs those of one thread in their order: they need not wait for each other.
  static bool ChangesExec(CallId call) {
    return call == CallId::lwGraphSetKernel || call == CallId::lwGraphSetChild;
  }

  // The pump; see receiver.cc.
  void ReceiverLoop();
  void Rest();
  void EndAsTheServerSays();
  void PumpForAWaiter(wire::Deadline deadline);
  bool CanRead();
  void Pump(std::chrono::nanoseconds spin, wire::Deadline deadline);
  bool HasLanded(const wire::DownHeader& header, std::span<const std::byte> payload,
                 wire::Deadline deadline);
  bool HandleRecord(const wire::DownHeader& header, std::span<const std::byte> payload);
  bool OnLanding(wire::Reader& reader);
  bool OnText(const wire::DownHeader& header, std::span<const std::byte> payload);
  bool OnReply(const wire::DownHeader& header, std::span<const std::byte> payload);
  bool OnProgress(const wire::DownHeader& header, wire::Reader& reader);
  bool OnError(const wire::DownHeader& header, wire::Reader& reader);
  void EndUpTo(uint64_t stream, uint64_t position);
  void EndNow(const Ending& ending);

  base::Mutex log_mutex_{base::ranks::kSessionLog};
  wire::RingProducer up_ LONGWIRE_GUARDED_BY(log_mutex_);
  wire::RingMemory& up_memory_;  // of up_; any thread may close it or wake the other side
  DeferredCall deferred_ LONGWIRE_GUARDED_BY(log_mutex_);  // there is one if has_deferred_
  std::atomic<bool> has_deferred_{false};
  std::atomic<uint64_t> newest_work_{0};
  std::atomic<uint64_t> newest_{0};  // position of the newest record
  // How long a round trip took, until the next record is appended, nanoseconds; 0: none was
  // measured.
  std::atomic<uint64_t> round_trip_{0};

  std::shared_ptr<wire::RingMemory> down_memory_;
  wire::RingConsumer down_;      // by the pump's owner
  bool awaits_landing_ = false;  // by the same: the next record waits for a copy's bytes
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
  static inline std::atomic<uint64_t> changes_{0};
  std::atomic<uint32_t> ahead_{0};     // calls made ahead that are not answered; see CallAhead
  std::atomic<uint32_t> ahead_by_{0};  // the number of the thread that made them
  std::string text_ LONGWIRE_GUARDED_BY(state_mutex_);
  std::string error_text_ LONGWIRE_GUARDED_BY(state_mutex_);

  Transfers transfers_;
  StreamEnds ends_;
  // One counter for all servers: a number names one object of the program.
  static inline std::atomic<uint64_t> next_id_{1};
  std::atomic<uint64_t> uploads_under_way_{0};
  wire::Descriptor socket_;       // until the session starts
  SocketWatch::Renewal renewal_;  // likewise
  SocketWatch watch_;
  wire::OpenReply opened_;
  SessionCounts counts_;
  const int server_;
  const std::string name_;
  std::atomic<bool> ending_{false};  // somebody says why it ends
  std::atomic<int> ended_{0};
  static inline std::atomic<bool> any_ended_{false};
  AtEnd at_end_ = nullptr;  // written before the session starts
  Lanes* lanes_ = nullptr;
};

// The sessions of this process, one for each server. Only after a successful cuInit.
std::span<ClientSession* const> Sessions();
// The first one: for what belongs to no device, context or stream.
ClientSession& TheSession();
// Adds one, before the process's state says that it is ready.
void AdoptSession(ClientSession* session);
// Takes one back that nobody uses any more: of tests that have several, one after the other.
void DropSession(ClientSession* session);
// Whether the program has devices of several servers.
inline bool are_several = false;  // written before cuInit returns
inline bool AreSeveral() { return are_several; }
// CUDA_ERROR_NOT_SUPPORTED, and a message, where there are several servers; else CUDA_SUCCESS.
// `what`: "managed memory".
CUresult RefuseIfSeveral(const char* what);
// Prints what the devices of all servers have printed up to now.
void FlushAllText();

}  // namespace longwire::shim
