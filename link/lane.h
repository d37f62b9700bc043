// One pair of a session's logs on the client's side: the session's own, or one of its lanes
// (wire/lane.h). Owns the rings, which the program shares, and the connection, which is made again
// when it breaks.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/resume_record.h"
#include "link/server_connection.h"
#include "link/transport/grpc_stream.h"
#include "link/transport/relay_end.h"
#include "link/transport/stream_pump.h"
#include "link/whereabouts.h"

namespace longwire::link {

class Lane {
 public:
  explicit Lane(uint32_t number) : number_(number) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // False when there is no memory for rings of `bytes`.
  bool CreateRings(size_t bytes);
  // Goes on with the rings of a link that has ended. False when they are no rings.
  bool AdoptRings(wire::Descriptor up, wire::Descriptor down);
  int up_descriptor() const { return up_->descriptor(); }
  int down_descriptor() const { return down_->descriptor(); }

  // The server's answer to the opening: what an attach needs.
  struct Right {
    uint64_t session = 0;
    transport::Token token{};
    std::chrono::milliseconds resume_grace{0};
  };
  void SetRight(const Right& right) { right_ = right; }
  // Where what another link needs is written. The session owns it.
  void SetRecord(ResumeRecord* record) { record_ = record; }
  // Follows the session to other servers. `followed` is called by Relay's thread each time.
  void SetWhereabouts(Whereabouts* whereabouts, std::function<void()> followed = {}) {
    whereabouts_ = whereabouts;
    followed_ = std::move(followed);
  }
  void SetServer(ServerChannel server) { server_ = std::move(server); }
  ServerChannel& server() { return server_; }

  // Makes the first connection without waiting for the answer. False when it broke at once.
  bool Attach();
  // Waits until the program has written to its ring. False when the lane was stopped or closed
  // before.
  bool WaitForBytes();
  // Relays until the session ends; closed() says how. Makes the connection if there is none. False
  // if it broke and could not be made again within resume_grace.
  bool Relay();
  const transport::Closed& closed() const { return closed_; }

  void CloseRings(uint32_t code);
  // Makes Relay and WaitForBytes return soon, after `closed` was sent to the server. Thread-safe.
  void Stop(const transport::Closed& closed);

 private:
  std::unique_ptr<transport::ClientStream> StartStream(uint32_t epoch);
  bool TakeAttached(std::span<const std::byte> body);
  bool AwaitAttached(transport::ClientStream& stream, uint32_t epoch);
  void WaitWhileSuspended(std::span<const std::byte> body);
  void TakeMoved(std::span<const std::byte> body);
  bool Follow();
  bool Connect(std::chrono::milliseconds patience);
  transport::StreamPump::Outcome PumpOnce();
  uint32_t NextEpoch(uint32_t epoch);
  void NoteLost(bool lost);
  std::chrono::milliseconds FirstPatience();
  bool SleepUnlessStopped(std::chrono::milliseconds time);
  std::chrono::steady_clock::time_point stopped_at();

  const uint32_t number_;
  Right right_;
  ResumeRecord* record_ = nullptr;  // none: no other link can go on with the session
  Whereabouts* whereabouts_ = nullptr;
  std::function<void()> followed_;
  uint32_t moves_ = 0;        // of the session, that this lane has followed
  bool adopted_ = false;      // from another link
  bool suspended_ = false;    // by the server, which says how long to wait
  bool abandons_ = false;     // the program has ended: nobody waits any more
  bool comes_again_ = false;  // the server's answer was to wait, or to go elsewhere
  ServerChannel server_;      // no channel until SetServer
  std::shared_ptr<wire::RingMemory> up_;
  std::shared_ptr<wire::RingMemory> down_;
  std::unique_ptr<transport::RelayEnd> relay_;
  std::unique_ptr<transport::ClientStream> stream_;
  transport::TrafficCounters counters_;
  transport::Closed closed_;
  // As the server said last: nanoseconds after a message; and the processor time that it has cost.
  std::atomic<uint64_t> awake_allowed_{0};
  std::atomic<uint64_t> awake_spent_{0};

  base::Mutex mutex_{base::ranks::kLinkLane};
  base::CondVar stop_changed_;
  bool stopped_ LONGWIRE_GUARDED_BY(mutex_) = false;
  transport::Closed stop_ LONGWIRE_GUARDED_BY(mutex_);  // sent to the server
  std::chrono::steady_clock::time_point stopped_at_ LONGWIRE_GUARDED_BY(mutex_);
  transport::StreamPump* pump_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;  // while it runs
};

}  // namespace longwire::link
