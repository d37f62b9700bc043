// One session on the server's side: its worker, its rings, and who may attach to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/bridges/rights.h"
#include "server/daemon/sessions/lane.h"
#include "server/daemon/sessions/warden_client.h"
#include "server/daemon/settings/peer.h"
#include "server/gates/gate_page.h"
#include "server/statistics/page.h"
#include "wire/open.h"

namespace longwire::daemon {

// The client, as it is shown to people.
struct ClientDescription {
  std::string program;
  std::string host;
  uint32_t pid = 0;
  Peer peer;
  size_t descriptors = 0;      // that were promised to it (server/admission/descriptor_plan.h)
  std::string claim;           // its number in the pool; empty: there was no pool
  uint64_t claimed_bytes = 0;  // on each device
  uint64_t time_limit = 0;     // seconds after its opening at which it is ended; 0: none
  std::string program_id;      // of a program with sessions at several servers; else empty
  bool alone = false;          // in a pool: nobody else gets its devices
  bool limit_is_rest = false;  // of the time limit, when it came from another server
  // True if the client came by the local socket and uses the worker's rings itself.
  bool local() const { return peer.uid.has_value(); }
};

class ServerSession {
 public:
  ServerSession(uint64_t id, ClientDescription client, StartedWorker worker,
                Clock::time_point opened = Clock::now());

  // Maps the rings of the session's own logs. False when the descriptors are no rings.
  bool MapRings();
  // The worker obeys the page from its introduction on; without one it is not scheduled.
  void SetGates(std::shared_ptr<gates::GatePage> page) { gates_ = std::move(page); }
  // A packet for the worker behind the opening; the page says that it comes.
  void SetRules(std::vector<std::byte> packet) { rules_ = std::move(packet); }
  // Likewise, behind that one.
  void SetStatistics(std::shared_ptr<statistics::Page> page) { statistics_ = std::move(page); }
  // Whether the session's thread in this process stays awake between messages. After MapRings.
  void SetAwake(std::shared_ptr<AwakeGrant> grant) { lanes_[0]->SetAwake(std::move(grant)); }
  // Sends the OpenRequest to the worker and waits for its OpenReply, with which the rings of the
  // other lanes come. False with a sentence.
  bool Introduce(std::span<const std::byte> request, const std::atomic<bool>& cancelled,
                 wire::OpenReply* reply, std::string* sentence);

  // Notes for the next daemon, of a session that was opened here. False when there is no memory.
  bool MakeNotes();
  // Instead of Introduce, for a session that another daemon opened: takes its rings but the first
  // pair, its segment, and the notes of its lanes (nullptr for a local client). False when they are
  // no rings.
  bool Inherit(std::vector<wire::Descriptor> rings, wire::Descriptor segment,
               std::shared_ptr<LaneNotes> notes);
  const LaneNotes* notes() const { return notes_.get(); }
  gates::GatePage* gates() const { return gates_.get(); }

  bool WorkerIsDead() const;
  // A duplicate of the worker's control socket; invalid when there are no descriptors left.
  wire::Descriptor ControlSocket() const;

  // The session's own logs are lane 0; the others carry large copies.
  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }
  Lane& lane(uint32_t index) { return *lanes_[index]; }
  // True if the token is the lane's and `peer` has the identity that opened the session.
  bool MayAttach(uint32_t lane, const transport::Token& token, const Peer& peer);

  // Who may connect to its lanes as the other end of a bridge.
  BridgeRights& bridge_rights() { return bridge_rights_; }

  // By what its client showed last who it is: when it opened the session, or resumed it.
  Proof proof() const;
  void SetProof(const Proof& proof);

  // Ends the session once: closes the rings and stops the relay. True for the call that did so.
  bool End(const transport::Closed& closed);
  // Stops the relay without an end, so that another daemon can go on with it.
  void Leave();
  // For a move (moving.cc). True for the one that may move it now.
  bool BeginMove() { return !moving_.exchange(true); }
  void EndMove();
  bool moving() const { return moving_; }
  // What becomes of it meanwhile, for people; empty: nothing.
  void SetMoves(std::string moves);
  std::string moves() const;
  // Breaks the connections and keeps them away, so that nobody uses the rings; or lets them come.
  bool Pause();
  void Resume(std::chrono::milliseconds longer = {});
  // Whether they are kept away now.
  bool held() const { return held_; }
  // This one, with a new worker, goes on where the other one, which is paused, is.
  bool GoOnFrom(ServerSession& other);
  // The same, where the rings have been filled by other means.
  void GoOn(std::shared_ptr<LaneNotes> notes);
  // Another session goes on in its place: nobody ends it any more. False if it has ended.
  bool Retire();
  // None does after all.
  void Return();
  // How End ended it; none: it has not.
  std::optional<transport::Closed> end() const;
  // Waits for the worker's end.
  bool WorkerEnds(std::chrono::milliseconds patience) const;
  // The numbers that its client knows it by.
  std::vector<uint64_t> formerly;
  // What it did before it was opened here, in other workers.
  struct Earlier {
    Clock::duration ran{0};
    uint64_t bytes_up = 0, bytes_down = 0;
  } earlier;
  Clock::duration age() const { return Clock::now() - opened_ + earlier.ran; }

  // `on_end` is called once by End before it closes the rings, or at once if the session has ended.
  // The local socket uses it. An empty one removes the earlier one, which is not running any more
  // when this returns. `on_end` must not call back into the session.
  void set_on_end(std::function<void(const transport::Closed&)> on_end);

  // When the last connection ended; time_point::max() while one is attached.
  Clock::time_point detached_since() { return lanes_[0]->detached_since(); }

  uint64_t id() const { return id_; }
  // For a log line about the session.
  transport::LogSubject subject() const { return client_.peer.subject(id_); }
  const ClientDescription& client() const { return client_; }
  // What is left of it, of a session that comes from another server. Before others know the
  // session.
  void SetTimeLimit(uint64_t seconds) {
    client_.time_limit = seconds;
    client_.limit_is_rest = true;
  }
  const warden::WorkerStarted& worker() const { return worker_.started; }
  // For each lane its up ring and its down ring; last the segment for pinned memory, if any.
  std::vector<int> shared_descriptors() const;
  bool has_segment() const { return segment_.valid(); }
  Clock::time_point opened() const { return opened_; }
  // Of all its logs.
  uint64_t bytes_up() const;
  uint64_t bytes_saved() const;
  uint64_t bytes_down() const;
  uint64_t messages_up() const;
  uint64_t messages_down() const;
  uint32_t epoch() { return lanes_[0]->epoch(); }

 private:
  void NoteBytes();
  bool AddLane(wire::Descriptor up, wire::Descriptor down);
  bool TakeReply(wire::Message& message, wire::OpenReply* reply);
  template <class Count>
  uint64_t Sum(Count count) const;

  const uint64_t id_;
  ClientDescription client_;  // constant once others know the session
  StartedWorker worker_;
  std::shared_ptr<gates::GatePage> gates_;
  std::vector<std::byte> rules_;                  // empty: none
  std::shared_ptr<statistics::Page> statistics_;  // null: none
  const Clock::time_point opened_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // constant after Introduce
  wire::Descriptor segment_;                  // likewise; of local clients only
  std::atomic<bool> moving_{false};
  std::atomic<bool> held_{false};
  BridgeRights bridge_rights_;
  std::shared_ptr<LaneNotes> notes_;  // likewise; of relayed ones only

  mutable base::Mutex mutex_{base::ranks::kServerSession};
  Proof proof_ LONGWIRE_GUARDED_BY(mutex_);
  std::string moves_ LONGWIRE_GUARDED_BY(mutex_);
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  std::optional<transport::Closed> end_ LONGWIRE_GUARDED_BY(mutex_);  // none: retired, or it runs
  std::function<void(const transport::Closed&)> on_end_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
