// Moves a session's two logs between rings and a connection until one side ends.
//
// Two threads. The one that calls Run polls connection and ring for a bounded time and then sleeps
// in the connection. While it sleeps (armed_), the sleeper sleeps on the ring and, woken by data,
// sends it itself: no byte waits for a hand-off between threads.
//
// While armed_ is true everything marked "shared" belongs to who holds mutex_; while it is false,
// to Run's thread. The compiler cannot check this: those members name no mutex.
#pragma once

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

namespace longwire::transport {

// Counted per session, over all its connections; bytes of the logs.
struct TrafficCounters {
  std::atomic<uint64_t> bytes_in{0};
  std::atomic<uint64_t> bytes_out{0};
  std::atomic<uint64_t> messages_in{0};
  std::atomic<uint64_t> messages_out{0};
  std::atomic<uint64_t> saved{0};  // of both: what packing made smaller, so that it was not sent
};

class StreamPump {
 public:
  enum class Outcome {
    kBroken,      // the connection went away
    kPeerClosed,  // the far end ended the session; closed() says how
    kStopped,     // Stop, or the local ring's other side closed it; closed() says how
    kViolation,   // the far end broke the protocol; closed() says how
  };

  // `relay` has its epoch; a read of `stream` is not under way.
  enum class Spinning { kYes, kNo };
  StreamPump(MessageStream& stream, RelayEnd& relay, TrafficCounters& counters,
             Spinning spinning = Spinning::kYes);

  // Told the body of a kFrameAttached, on Run's thread; false: it cannot be read. Set before Run.
  void set_on_attached(std::function<bool(std::span<const std::byte>)> on_attached) {
    on_attached_ = std::move(on_attached);
  }

  // Told what a kFrameTerms says, in the same way.
  void set_on_terms(std::function<void(const Terms&)> on_terms) { on_terms_ = std::move(on_terms); }

  // Returns when it is over. The stream still has to be ended.
  Outcome Run();
  // Sends what the outgoing ring holds, then `closed`, and makes Run return. From any thread.
  void Stop(Closed closed);
  // Tells the far end, which hears terms, what holds from now on; here it holds then, too. Of
  // several the last counts. From any thread.
  void Tell(const Terms& terms);
  // Makes Run return with kBroken without another word. From any thread.
  void Abandon();
  // After Run.
  const Closed& closed() const { return closed_; }

 private:
  bool AnswerGoesFirst(std::chrono::steady_clock::time_point now) const;
  void ReadOn();
  void Sleeper();
  bool SleeperMayWork() const LONGWIRE_REQUIRES(mutex_);
  void Sleep();
  bool MayRest();
  void HandleEvent(MessageStream::Event event);
  void HandleFrame();
  void HandleControl(const ReceivedFrame& frame);
  bool Send();
  bool SendTerms();
  void WriteBatch(const RelayEnd::Batch& batch);
  void Count(size_t plain, size_t moved, std::atomic<uint64_t>* bytes);
  void Write(const FrameHeader& header, std::span<const std::byte> bytes,
             std::shared_ptr<void> keep);
  void WriteControl(uint32_t flags, std::string body);
  void LookForEnd();
  void Violation(std::string sentence);

  MessageStream& stream_;
  TrafficCounters& counters_;
  const Spinning spinning_;
  std::function<bool(std::span<const std::byte>)> on_attached_;
  std::function<void(const Terms&)> on_terms_;

  // Of Run's thread.
  std::optional<Outcome> outcome_;
  wire::Deadline stop_deadline_ = wire::Deadline::max();
  Unpacker unpacker_;
  AnswerPrediction answers_;
  bool read_due_ = false;  // a message was taken, the next is not asked for yet
  std::chrono::steady_clock::time_point message_at_;  // a message came or went last
  bool rested_ = true;                                // since then
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
