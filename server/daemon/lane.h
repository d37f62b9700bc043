// One pair of a session's logs on the server's side: the session's own, or one of its lanes
// (wire/lane.h). Its rings, the right to attach to it, its connection.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/grpc_stream.h"
#include "link/transport/relay_end.h"
#include "link/transport/stream_pump.h"
#include "server/daemon/token.h"
#include "wire/socket.h"

namespace longwire::daemon {

using Clock = std::chrono::steady_clock;

class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Takes the descriptors over. False when they are no rings. Not `relayed`: the client uses the
  // rings itself, and nobody attaches.
  bool MapRings(wire::Descriptor up, wire::Descriptor down, bool relayed);

  void SetToken(const transport::Token& token);
  bool TokenFits(const transport::Token& token);

  // Relays over `stream` until it ends. An older connection is dropped first; nullopt when this is
  // an older one itself, that came late. `compression` as in SetTerms. kViolation with *closed when
  // the client may not continue from where it says.
  std::optional<transport::StreamPump::Outcome> Relay(transport::ServerStream& stream,
                                                      const transport::Attach& attach,
                                                      uint32_t epoch, bool compression,
                                                      transport::Closed* closed);

  // A reload has changed what holds: who is attached, or comes back, is told. `compression`:
  // whether bytes may be packed for a client that wants it.
  void SetTerms(std::chrono::milliseconds resume_grace, bool compression);

  // Stops the relay and closes the rings; nobody attaches any more.
  void End(const transport::Closed& closed);

  // When nobody is attached: since when; time_point::max() otherwise.
  Clock::time_point detached_since();
  uint32_t epoch();
  int up_descriptor() const { return up_->descriptor(); }
  int down_descriptor() const { return down_->descriptor(); }
  const transport::TrafficCounters& counters() const { return counters_; }
  // Bytes of log, also without a relay.
  uint64_t bytes_up() const;
  uint64_t bytes_down() const;

 private:
  enum class TakenOver { kYes, kOlder, kNo };
  TakenOver TakeOver(uint32_t epoch, const transport::Attach& attach, bool compression);
  // With a new token; `shown` is the one that the client came with.
  bool SendAttached(transport::ServerStream& stream, const transport::Token& shown);
  bool IsFirstAttach();
  // What there is to tell goes to the pump.
  void TellTerms() LONGWIRE_REQUIRES(mutex_);

  bool relayed_ = false;
  std::shared_ptr<wire::RingMemory> up_;
  std::shared_ptr<wire::RingMemory> down_;
  transport::TrafficCounters counters_;

  // There is one as long as the lane is, if it is relayed. What is in it belongs to who is
  // attaching or attached (attaching_), its epoch to who holds mutex_.
  std::unique_ptr<transport::RelayEnd> relay_;

  base::Mutex mutex_{base::ranks::kDaemonLane};
  base::CondVar changed_;
  transport::StreamPump* pump_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
  // By who is attached, to whom it may be told.
  uint32_t wanted_packing_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool hears_terms_ LONGWIRE_GUARDED_BY(mutex_) = false;
  struct NewTerms {
    std::chrono::milliseconds resume_grace;
    bool compression;
  };
  std::optional<NewTerms> terms_ LONGWIRE_GUARDED_BY(mutex_);  // since the session was opened
  bool attaching_ LONGWIRE_GUARDED_BY(mutex_) = false;
  uint32_t waiting_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // newer connections
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  transport::Closed end_ LONGWIRE_GUARDED_BY(mutex_);
  Clock::time_point detached_since_ LONGWIRE_GUARDED_BY(mutex_) = Clock::now();
  TokenHash token_ LONGWIRE_GUARDED_BY(mutex_){};
  TokenHash previous_token_ LONGWIRE_GUARDED_BY(mutex_){};  // that the client showed last
  // Until the client has shown that it got the new one.
  bool previous_good_ LONGWIRE_GUARDED_BY(mutex_) = false;
  // Nobody had attached before who is attached now.
  bool first_attach_ LONGWIRE_GUARDED_BY(mutex_) = false;
  uint64_t messages_at_attach_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::daemon
