// Moves a session's two logs between rings and a connection until one side ends.
//
// Two threads. The one that calls Run polls connection and ring for a bounded time and then sleeps
// in the connection. While it sleeps (armed_), the second thread sleeps on the ring and sends new
// data itself, so no byte waits for a hand-off between threads; it then wakes the first, which is
// awake when the answer comes.
//
// While armed_ is true, the members under "Shared" are guarded by mutex_; while it is false, they
// belong to Run's thread. The compiler cannot check this: those members name no mutex.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/answer_prediction.h"
#include "link/transport/heap_rest.h"
#include "link/transport/message_stream.h"
#include "link/transport/packing.h"
#include "link/transport/relay_end.h"
#include "link/transport/spinning.h"
#include "wire/rings/spinning.h"

namespace longwire::transport {

// Counted per session, over all its connections; bytes of the logs.
struct TrafficCounters {
  std::atomic<uint64_t> bytes_in{0};
  std::atomic<uint64_t> bytes_out{0};
  std::atomic<uint64_t> messages_in{0};
  std::atomic<uint64_t> messages_out{0};
  std::atomic<uint64_t> saved{0};  // of both: bytes that compression saved
};

class StreamPump {
 public:
  enum class Outcome {
    kBroken,      // the connection went away
    kPeerClosed,  // the far end ended the session; closed() says how
    kStopped,     // Stop, or the local ring's other side closed it; closed() says how
    kViolation,   // the far end broke the protocol; closed() says how
  };

  // `relay` has its epoch; no read of `stream` is under way.
  enum class Spinning { kYes, kNo };
  StreamPump(MessageStream& stream, RelayEnd& relay, TrafficCounters& counters,
             Spinning spinning = Spinning::kYes);

  // Called on Run's thread with the body of a kFrameAttached; returns false if it cannot be
  // decoded. Set before Run.
  void set_on_attached(std::function<bool(std::span<const std::byte>)> on_attached) {
    on_attached_ = std::move(on_attached);
  }

  // Called with the content of a kFrameTerms, in the same way.
  void set_on_terms(std::function<void(const Terms&)> on_terms) { on_terms_ = std::move(on_terms); }

  // Run's thread stays awake after the session's last message for as long as `allowed` says, while
  // `has_spare`; see wire/rings/awake.h and AwakeSpin. What a message runs through gets cold while
  // the thread only looks for one: the end that asks sends an acknowledgement now and then, and the
  // other answers by one if it is awake, too. Called before Run.
  enum class Warmth { kAsks, kAnswers };
  void StayAwake(const std::atomic<uint64_t>* allowed, std::atomic<uint64_t>* spent, Warmth warmth,
                 std::function<bool()> has_spare = {});

  // Relays until the end. The caller still has to end the stream.
  Outcome Run();
  // Sends what the outgoing ring holds, then `closed`, and makes Run return. Thread-safe.
  void Stop(Closed closed);
  // Sends new terms to a far end that understands them, and applies them here. Only the last of
  // several is sent. Thread-safe.
  void ChangeTerms(const Terms& terms);
  // Makes Run return kBroken without sending anything. Thread-safe.
  void Abandon();
  // After Run.
  const Closed& closed() const { return closed_; }

 private:
  using Event = MessageStream::Event;
  // What comes next. After a rest the one is soon there, the other is the rest itself: each wait
  // resembles the last ones of its kind.
  enum Awaited { kFarEnd, kThisEnd };

  void KeepWarm(std::chrono::steady_clock::time_point now);
  bool OnlyKeepsWarm(Event event);
  void Waited(std::chrono::nanoseconds took, bool received, bool sent);
  bool StaysAwake(std::chrono::steady_clock::time_point now);
  void Moved(std::chrono::steady_clock::time_point when);
  bool AnswerGoesFirst(std::chrono::steady_clock::time_point now) const;
  void ReadOn();
  void Sleeper();
  bool SleeperMayWork() const LONGWIRE_REQUIRES(mutex_);
  Event Sleep();
  bool MayRest();
  void Rest();
  void HandleEvent(Event event);
  void HandleFrame();
  void HandleControl(const ReceivedFrame& frame);
  bool Send();
  bool SendTerms();
  void WriteBatch(const RelayEnd::Batch& batch);
  void Count(size_t plain, size_t moved, std::atomic<uint64_t>* bytes);
  void Write(const FrameHeader& header, std::span<const std::byte> bytes,
             std::shared_ptr<void> keep);
  void WriteControl(uint32_t flags, std::string body);
  void CheckForEnd();
  void Violation(std::string sentence);

  MessageStream& stream_;
  TrafficCounters& counters_;
  const Spinning spinning_;
  const bool tells_waits_apart_;  // both off with LONGWIRE_DISABLE=early-wakes
  const bool wakes_early_;
  std::function<bool(std::span<const std::byte>)> on_attached_;
  std::function<void(const Terms&)> on_terms_;

  // Used by Run's thread only.
  std::optional<Outcome> outcome_;
  wire::Deadline stop_deadline_ = wire::Deadline::max();
  Unpacker unpacker_;
  AnswerPrediction answers_;
  std::array<wire::SpinPrediction, 2> waits_{wire::SpinPrediction(wire::AllowedCores()),
                                             wire::SpinPrediction(wire::AllowedCores())};
  Awaited awaited_ = kThisEnd;
  wire::Awake awake_;
  std::function<bool()> has_spare_;
  std::optional<AwakeSpin> awake_spin_;  // while it stays awake
  Warmth warmth_ = Warmth::kAnswers;
  bool warmth_answered_ = false;  // the far end is awake, or has not been asked yet
  bool warmth_due_ = false;       // the far end has asked
  bool warmth_written_ = false;   // such a write is under way
  bool came_empty_ = false;       // the last frame: an acknowledgement alone
  std::chrono::steady_clock::time_point warmed_at_;
  bool polls_ring_ = false;  // no thread could be started that sleeps on the ring
  bool read_due_ = false;    // a message was taken, the next read has not started
  std::chrono::steady_clock::time_point message_at_;  // the last message received or sent
  bool rested_ = true;                                // since message_at_
  HeapUser heap_user_;

  base::Mutex mutex_{base::ranks::kStreamPump};
  base::CondVar changed_;  // armed_, writing_ or over_
  bool armed_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool over_ LONGWIRE_GUARDED_BY(mutex_) = false;
  Closed wanted_close_ LONGWIRE_GUARDED_BY(mutex_);

  // Shared.
  RelayEnd& relay_;
  Packer packer_;
  bool writing_ = false;  // a write is under way
  bool close_sent_ = false;
  std::optional<std::string> pong_;
  Closed closed_;

  base::Mutex terms_mutex_{base::ranks::kPumpTerms};
  std::optional<Terms> terms_ LONGWIRE_GUARDED_BY(terms_mutex_);
  std::atomic<bool> has_terms_{false};

  std::atomic<bool> stopping_{false};
  std::atomic<bool> abandoned_{false};
};

}  // namespace longwire::transport
