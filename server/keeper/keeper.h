// The keeper's loop: workers ask for memory over their sockets, the warden adds workers, processes
// end. One thread, never blocked by a peer: sockets are written without waiting, and what does not
// fit now is sent later; a worker is not read while it has an answer outstanding.
#pragma once

#include <poll.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/keeper/chunk_pool.h"
#include "server/keeper/drain.h"
#include "server/keeper/hello.h"
#include "server/keeper/job_thread.h"
#include "server/keeper/swaps.h"
#include "wire/socket.h"

namespace longwire::keeper {

class Keeper {
 public:
  // `control` is the socket to the warden; `state` has what the keeper does not know itself (the
  // driver).
  Keeper(DeviceMemory& device, const PoolOptions& options, wire::Descriptor control,
         KeeperState state = {});

  // Serves until the warden closes the control socket.
  void Run();
  // One pass, for tests: handles what is there, waits at most `timeout`. False: the warden is gone.
  bool RunOnce(std::chrono::milliseconds timeout);

  ChunkPool& pool() { return pool_; }

 private:
  // A session whose next work needs what is in the host's memory.
  struct Homecoming {
    LeaseInProgress lease;
    uint64_t order = 0;                             // who asked first is first
    bool begun = false;                             // some of it is on its way
    std::chrono::steady_clock::time_point since{};  // when that began
    Drain::Round round;
    std::chrono::steady_clock::time_point round_begun{};
  };
  // A worker; until its process is gone, which can be long after its socket.
  struct Session {
    uint64_t worker = 0;
    uint32_t version = 0;                    // of its worker's Hello; 0: it has said none
    wire::Descriptor socket;                 // invalid: closed
    wire::Descriptor process;                // pidfd; invalid: gone as soon as the socket is closed
    std::unique_ptr<LeaseInProgress> lease;  // waits for memory
    std::chrono::steady_clock::time_point asked{};  // since when: the lease, or `info`
    Drain::Round round;                             // who was asked to give memory back for it
    std::optional<GetInfo> info;                    // waits for other sessions' figures
    std::vector<std::byte> later;                   // came while one of these waited
    std::unique_ptr<LeaseInProgress> grant;         // being sent
    size_t granted = 0;                             // chunks of `grant` that were sent
    std::unique_ptr<Homecoming> back;               // it wants what is away
    bool watched = false;                           // it was told to say when it works
    std::deque<std::vector<std::byte>> answers;     // do not fit into the socket yet
    bool waits() const { return lease != nullptr || info.has_value(); }
    bool blocked() const { return grant != nullptr || !answers.empty() || !later.empty(); }
  };

  // False when there is no message; *open: the warden is still there.
  bool ReadControl(bool* open);
  void ReadSession(Session& session);
  void HandlePacket(Session& session, std::span<const std::byte> packet);
  void HandleRequest(Session& session, std::span<const std::byte> packet);
  void GreetWorker(Session& session, wire::VersionRange versions);
  void HandleShare(Session& session, const Share& share);
  void HandleBorrow(Session& session, const Borrow& borrow);
  void Answer(Session& session, std::vector<std::byte> packet);
  void Send(Session& session);
  // Sends the next chunks of a grant; false if the socket is full or the grant could not be made.
  bool SendGrant(Session& session);
  void RefuseGrant(Session& session, int code);
  void RefuseLease(Session& session);
  bool AdvanceLeases();  // true if one still waits
  // The lease has no memory: asks sessions for some. False: nobody is left to ask or to wait for.
  bool Reclaim(Session& session);
  void HandleReclaimed(Session& session, Reclaimed answer);
  bool AnswerInfos();  // true if one still waits
  void AskUnused();
  void SendAsks(std::span<const Drain::Ask> asks);
  // Sessions whose free memory can help another one.
  std::vector<uint64_t> Lenders(uint64_t worker, bool of_tenant) const;
  // Swapping (swapping.cc). The lease has no memory, and nobody has any free: sessions let go of
  // some. False: nobody does.
  bool SwapFor(Session& session);
  bool HandleSwapPacket(Session& session, std::span<const std::byte> packet);
  bool AdvanceSwaps();  // true if something is under way
  void AdvanceHomecoming(Session& session, bool first, bool* taken);
  void Deliver(Session& session);
  void TakeMoved();
  void EndLate();
  void SendSwapAsks(std::span<const Swaps::Ask> asks);
  // What may leave for the sake of this session. `order`: of one that wants to come back, else 0.
  // *later: what may once others have what they wait for.
  std::vector<Region> MovableFor(const Session& session, uint64_t order,
                                 std::vector<Region>* later = nullptr);
  bool LetsGoNow(const Session& session, const Session& wants, uint64_t order) const;
  bool LetsGoLater(const Session& session, const Session& wants) const;
  bool NeedsMemoryOf(const Session& wants, const Session& back) const;
  void AddHostMemory();
  void Watch(Session& session);
  void CloseSocket(Session& session);
  void Forget(uint64_t worker);
  void StartScrubbing();
  uint64_t Stock() const;  // bytes that are to wait, ready to be lent
  // Keeps chunks ready: for the sessions that open next, and for those that need more.
  bool LacksPrepared() const;
  void Prepare();
  void SendState();
  uint64_t Version() const;  // of what SendState tells
  std::vector<pollfd> PollSet() const;

  static PoolOptions WithLog(PoolOptions options, EventLog* events, SwapPolicy* policy);

  DeviceMemory& device_;
  EventLog events_;
  std::unique_ptr<SwapPolicy> policy_;
  ChunkPool pool_;
  Drain drain_;
  Swaps swaps_;
  KeeperLimits limits_;
  Quota* const quota_;  // nullptr: nobody has a limit
  const bool drains_;   // sessions are asked for memory that they keep free
  const bool swaps_on_;
  wire::Descriptor control_;
  std::map<uint64_t, Session> sessions_;                  // by worker
  bool waiting_ = false;                                  // a lease or a figure waits
  std::chrono::steady_clock::time_point prepare_from_{};  // not before
  Drain::Time next_unused_ = Drain::Time::max();          // unused memory is asked for again
  uint64_t refused_ = 0;                                  // leases
  uint64_t remaps_ = 0, remapped_ = 0;  // copies that were made by mapping, and their bytes
  uint64_t homecomings_ = 0;
  uint64_t pinning_ = 0;      // bytes of the host's memory that are being made ready
  bool pin_failed_ = false;   // there is no more
  uint64_t swapped_out_ = 0;  // bytes
  uint64_t swapped_in_ = 0;
  KeeperState state_;
  uint64_t sent_version_ = 0;
  uint64_t sent_event_ = 0;
  std::chrono::steady_clock::time_point sent_at_{};
  // Last: their threads stop before the pool goes.
  JobThread<ScrubJob> small_scrubber_;
  JobThread<ScrubJob> large_scrubber_;
  JobThread<SwapJob> swap_thread_;
};

}  // namespace longwire::keeper
