// One pair of a session's logs on the server's side: the session's own, or one of its lanes
// (wire/lane.h). Owns the rings, the token for attaching, and the connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/grpc_stream.h"
#include "link/transport/relay_end.h"
#include "link/transport/stream_pump.h"
#include "server/daemon/sessions/lane_notes.h"
#include "server/daemon/settings/token.h"
#include "server/daemon/sharing/awake_cores.h"
#include "wire/socket.h"

namespace longwire::daemon {

using Clock = std::chrono::steady_clock;

class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Takes ownership of the descriptors. False when they are no rings. Not `relayed`: the client
  // uses the rings itself and no connection attaches.
  bool MapRings(wire::Descriptor up, wire::Descriptor down, bool relayed);

  void SetToken(const transport::Token& token);
  // Writes what the next daemon has to know into the session's notes from now on. The lane itself
  // goes on from there if it is `inherited`: another daemon's, which has ended.
  void SetNotes(std::shared_ptr<LaneNotes> notes, uint32_t index, bool inherited);
  bool TokenFits(const transport::Token& token);

  // Relays over `stream` until it ends. Drops an older connection first; nullopt when a newer one
  // is attached already. `compression` as in SetTerms. kViolation, with *closed, when the client
  // cannot continue from the position that it sent.
  std::optional<transport::StreamPump::Outcome> Relay(transport::ServerStream& stream,
                                                      const transport::Attach& attach,
                                                      uint32_t epoch, bool compression,
                                                      transport::Closed* closed);

  // Connects to a lane of another server's session, over a stream that has just been begun, and
  // relays until it ends; `joined` is called when the other end has agreed. `attach` has what is
  // known of the other end, and `far_epoch` is of its newest connection. Returns why it was not
  // joined. An older connection is dropped first.
  std::string Join(transport::ClientStream& stream, const transport::Attach& attach,
                   uint32_t far_epoch, const std::function<void()>& joined);
  bool joined();

  // Applies a reload: the terms are sent to the client that is attached, or to one that resumes.
  // `compression`: whether bytes may be compressed for a client that wants it. How long its link
  // may stay awake the grant says, each time.
  void SetTerms(std::chrono::milliseconds resume_grace, bool compression);
  // The thread that relays stays awake as the grant says, and the link. Called before any attaches.
  void SetAwake(std::shared_ptr<AwakeGrant> grant) { awake_ = std::move(grant); }

  // Stops the relay and closes the rings; later attaches are refused.
  void End(const transport::Closed& closed);

  // Breaks the connection; later attaches are refused. The rings stay open.
  void Leave();

  // For a move: breaks the connection and keeps others away, until Resume or for good. Waits until
  // nobody uses the rings; false if that takes too long.
  bool Pause();
  // `longer`: added to the time that its client has, until WaitNoLonger.
  void Resume(std::chrono::milliseconds longer = {});
  void WaitNoLonger();
  // The lane of the same session's new worker goes on where this one, which is paused, is: gets its
  // bytes, positions and notes. False if the rings do not fit.
  bool GoOnFrom(Lane& other);
  // The same for one whose rings have been filled by other means.
  void GoOn(std::shared_ptr<LaneNotes> notes, uint32_t index);
  // While it is paused.
  wire::RingMemory& up_ring() { return *up_; }
  wire::RingMemory& down_ring() { return *down_; }

  // When the last connection ended; time_point::max() while one is attached.
  Clock::time_point detached_since();
  // Whether its link, as it connected last, goes where the session moves.
  bool link_follows();
  void set_link_follows(bool follows);
  uint32_t epoch();
  int up_descriptor() const { return up_->descriptor(); }
  int down_descriptor() const { return down_->descriptor(); }
  const transport::TrafficCounters& counters() const { return counters_; }
  // Bytes of log, also without a relay.
  uint64_t bytes_up() const;
  uint64_t bytes_down() const;

 private:
  enum class TakenOver { kYes, kOlder, kPaused, kNo };
  TakenOver TakeOver(uint32_t epoch, const transport::Attach& attach, bool compression);
  // Answers with a new token; `shown` is the one that the client sent.
  bool SendAttached(transport::ServerStream& stream, const transport::Token& shown);
  bool IsFirstAttach();
  // The steps of Join. The first two return why not, else nothing.
  std::string BeginJoin(uint32_t far_epoch, uint32_t* epoch);
  std::string Greet(transport::ClientStream& stream, transport::Attach attach, uint32_t epoch);
  void EndJoin();
  void WriteNote() LONGWIRE_REQUIRES(mutex_);
  // Passes new terms to the pump, if the client understands them.
  void SendTerms() LONGWIRE_REQUIRES(mutex_);

  bool relayed_ = false;
  std::shared_ptr<AwakeGrant> awake_;
  std::shared_ptr<wire::RingMemory> up_;
  std::shared_ptr<wire::RingMemory> down_;
  transport::TrafficCounters counters_;

  // nullptr if the lane is not relayed. Its content belongs to the thread that attaches or is
  // attached (attaching_); its epoch is guarded by mutex_.
  std::unique_ptr<transport::RelayEnd> relay_;

  base::Mutex mutex_{base::ranks::kDaemonLane};
  base::CondVar changed_;
  transport::StreamPump* pump_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
  // From the Attach of the connection.
  uint32_t wanted_packing_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  bool understands_terms_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool link_follows_ LONGWIRE_GUARDED_BY(mutex_) = false;
  struct NewTerms {
    std::chrono::milliseconds resume_grace;
    bool compression;
  };
  std::optional<NewTerms> terms_
      LONGWIRE_GUARDED_BY(mutex_);  // changed since the session was opened
  bool attaching_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool joined_ LONGWIRE_GUARDED_BY(mutex_) = false;   // to a lane of another server
  uint32_t waiting_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // newer connections
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool left_ LONGWIRE_GUARDED_BY(mutex_) = false;
  bool paused_ LONGWIRE_GUARDED_BY(mutex_) = false;
  transport::Closed end_ LONGWIRE_GUARDED_BY(mutex_);
  Clock::time_point detached_since_ LONGWIRE_GUARDED_BY(mutex_) = Clock::now();
  LaneNote note_ LONGWIRE_GUARDED_BY(mutex_);
  std::shared_ptr<LaneNotes> notes_ LONGWIRE_GUARDED_BY(mutex_);  // nullptr: not written
  uint32_t index_ LONGWIRE_GUARDED_BY(mutex_) = 0;                // in the notes
  uint64_t messages_at_attach_ LONGWIRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace longwire::daemon
