// One session, on the server's side: its worker, its rings, who may attach to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/daemon/lane.h"
#include "server/daemon/peer.h"
#include "server/daemon/warden_client.h"
#include "server/gates/gate_page.h"
#include "wire/open.h"

namespace longwire::daemon {

// What is known of the client, for people.
struct ClientDescription {
  std::string program;
  std::string host;
  uint32_t pid = 0;
  Peer peer;
  // Came through the local door and uses the worker's rings itself.
  bool local() const { return peer.uid.has_value(); }
};

class Session {
 public:
  Session(uint64_t id, ClientDescription client, StartedWorker worker);

  // Maps the rings of the session's own logs. False when they are none.
  bool MapRings();
  // The worker obeys it from its introduction on; without one it never waits for a turn.
  void SetGates(std::shared_ptr<gates::GatePage> page) { gates_ = std::move(page); }
  // Sends the OpenRequest to the worker and waits for its OpenReply, with which the rings of the
  // other lanes come. False with a sentence.
  bool Introduce(std::span<const std::byte> request, const std::atomic<bool>& cancelled,
                 wire::OpenReply* reply, std::string* sentence);

  bool WorkerIsDead() const;
  // The worker's control socket once more; invalid when there are no descriptors left.
  wire::Descriptor ControlSocket() const;

  // The session's own logs are lane 0; the others carry large copies.
  uint32_t lanes() const { return static_cast<uint32_t>(lanes_.size()); }
  Lane& lane(uint32_t index) { return *lanes_[index]; }
  // Whether the token is that lane's and `peer` the one that opened the session.
  bool MayAttach(uint32_t lane, const transport::Token& token, const Peer& peer);

  // Ends it once: closes the rings, stops the relay. True for the call that ended it.
  bool End(const transport::Closed& closed);
  // Called once by End before it closes the rings, or now if it has ended; for the local door.
  // Empty: nobody is called, and nobody is being called any more when this returns. It may not call
  // back into the session.
  void set_on_end(std::function<void(const transport::Closed&)> on_end);

  // When nobody is attached: since when; time_point::max() otherwise.
  Clock::time_point detached_since() { return lanes_[0]->detached_since(); }

  uint64_t id() const { return id_; }
  // Of a line about it.
  transport::LogSubject subject() const { return client_.peer.subject(id_); }
  const ClientDescription& client() const { return client_; }
  const warden::WorkerStarted& worker() const { return worker_.started; }
  // Of each lane the ring up, then the one down; last the segment for pinned memory, if there is
  // one.
  std::vector<int> shared_descriptors() const;
  Clock::time_point opened() const { return opened_; }
  // Of all its logs.
  uint64_t bytes_up() const;
  uint64_t bytes_saved() const;
  uint64_t bytes_down() const;
  uint64_t messages_up() const;
  uint64_t messages_down() const;
  uint32_t epoch() { return lanes_[0]->epoch(); }

 private:
  bool AddLane(wire::Descriptor up, wire::Descriptor down);
  bool TakeReply(wire::Message& message, wire::OpenReply* reply);
  template <class Count>
  uint64_t Sum(Count count) const;

  const uint64_t id_;
  const ClientDescription client_;
  StartedWorker worker_;
  std::shared_ptr<gates::GatePage> gates_;
  const Clock::time_point opened_ = Clock::now();
  std::vector<std::unique_ptr<Lane>> lanes_;  // as they are once the session is introduced
  wire::Descriptor segment_;                  // the same; only of local clients

  base::Mutex mutex_{base::ranks::kSession};
  bool ended_ LONGWIRE_GUARDED_BY(mutex_) = false;
  transport::Closed end_ LONGWIRE_GUARDED_BY(mutex_);
  std::function<void(const transport::Closed&)> on_end_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::daemon
