// One session, on the server's side: its worker, its rings, who may attach to it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "link/transport/grpc_stream.h"
#include "link/transport/relay_end.h"
#include "link/transport/stream_pump.h"
#include "server/daemon/peer.h"
#include "server/daemon/token.h"
#include "server/daemon/warden_client.h"
#include "server/gates/gate_page.h"
#include "wire/open.h"

namespace longwire::daemon {

using Clock = std::chrono::steady_clock;

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

  // Maps the worker's rings. False when they are none.
  bool MapRings();
  // The worker obeys it from its introduction on; without one it never waits for a turn.
  void SetGates(std::shared_ptr<gates::GatePage> page) { gates_ = std::move(page); }
  // Sends the OpenRequest to the worker and waits for its OpenReply. False with a sentence.
  bool Introduce(std::span<const std::byte> request, const std::atomic<bool>& cancelled,
                 wire::OpenReply* reply, std::string* sentence);

  bool WorkerIsDead() const;

  // The right to attach.
  void SetToken(const transport::Token& token);
  // Whether the token is this session's and `peer` the one that opened it.
  bool MayAttach(const transport::Token& token, const Peer& peer);

  // Relays over `stream` until it ends. An older connection of the session is dropped first.
  // kViolation with closed() when the client may not continue from where it says.
  transport::StreamPump::Outcome Relay(transport::ServerStream& stream,
                                       const transport::Attach& attach, uint32_t epoch,
                                       transport::Closed* closed);

  // Ends it once: closes the rings, stops the relay. True for the call that ended it.
  bool End(const transport::Closed& closed);
  // Called once by End before it closes the rings, or now if it has ended; for the local door.
  // Empty: nobody is called, and nobody is being called any more when this returns. It may not call
  // back into the session.
  void set_on_end(std::function<void(const transport::Closed&)> on_end);

  // When nobody is attached: since when; time_point::max() otherwise.
  Clock::time_point detached_since();

  uint64_t id() const { return id_; }
  // Of a line about it.
  transport::LogSubject subject() const { return client_.peer.subject(id_); }
  const ClientDescription& client() const { return client_; }
  const warden::WorkerStarted& worker() const { return worker_.started; }
  int up_descriptor() const { return up_->descriptor(); }
  int down_descriptor() const { return down_->descriptor(); }
  transport::TrafficCounters& counters() { return counters_; }
  Clock::time_point opened() const { return opened_; }
  // Bytes of log, also for sessions without a relay.
  uint64_t bytes_up() const;
  uint64_t bytes_down() const;
  uint32_t epoch();

 private:
  bool TakeOver(uint32_t epoch, const transport::Attach& attach);
  bool SendAttached(transport::ServerStream& stream);

  const uint64_t id_;
  const ClientDescription client_;
  StartedWorker worker_;
  std::shared_ptr<gates::GatePage> gates_;
  const Clock::time_point opened_ = Clock::now();
  std::shared_ptr<wire::RingMemory> up_;
  std::shared_ptr<wire::RingMemory> down_;
  transport::TrafficCounters counters_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // All under mutex_; relay_ belongs to the pump while there is one.
  std::unique_ptr<transport::RelayEnd> relay_;
  transport::StreamPump* pump_ = nullptr;
  bool attaching_ = false;
  bool ended_ = false;
  transport::Closed end_;
  std::function<void(const transport::Closed&)> on_end_;
  Clock::time_point detached_since_ = Clock::now();
  TokenHash token_{};
  TokenHash previous_token_{};
  bool previous_good_ = false;  // until the client has shown that it got the new one
  uint64_t messages_at_attach_ = 0;
};

}  // namespace longwire::daemon
