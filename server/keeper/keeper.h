// The keeper's loop: serves workers' requests for memory over their sockets, and the warden, which
// adds workers. One thread that no peer can block: it writes to sockets without waiting, queues
// what does not fit, and reads no further request of a worker whose answer is pending.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/poll_set.h"
#include "server/keeper/chunk_pool.h"
#include "server/keeper/drain.h"
#include "server/keeper/job_thread.h"
#include "server/keeper/nvml/device_health.h"
#include "server/keeper/swap_advice/advised_swaps.h"
#include "server/keeper/swaps.h"
#include "server/protocol/charges.h"
#include "server/protocol/hello.h"
#include "server/protocol/info_page.h"
#include "wire/socket.h"

namespace longwire::keeper {

class Keeper {
 public:
  // `control` is the socket to the warden; `state` has the fields that the caller knows (the
  // driver).
  Keeper(DeviceMemory& device, const PoolOptions& options, wire::Descriptor control,
         KeeperState state = {});

  // The version that the warden speaks; what only newer ones know is reported from then on.
  void SetWardenVersion(uint32_t version) { warden_version_ = version; }
  // Serves until the warden closes the control socket.
  void Run();
  // One pass, for tests: waits at most `timeout` for events and handles them. False: the warden has
  // closed the socket.
  bool RunOnce(std::chrono::milliseconds timeout);

  ChunkPool& pool() { return pool_; }

 private:
  // A pending swap-in: the session's next work needs its swapped memory.
  struct SwapIn {
    LeaseInProgress lease;
    uint64_t order = 0;                             // order of the requests
    bool begun = false;                             // copies have been started
    std::chrono::steady_clock::time_point since{};  // when they were started
    std::chrono::nanoseconds stay{0};               // at least, if a policy says so
    Drain::Round round;
    std::chrono::steady_clock::time_point round_begun{};
  };
  // A worker, until its process has ended, which can be long after its socket was closed.
  struct KeeperSession {
    uint64_t worker = 0;
    uint32_t version = 0;          // of its worker's Hello; 0: none received
    bool again = false;            // of a predecessor's,
    bool reattaches = false;       // and has not said yet what it has of that one
    std::vector<uint64_t> held{};  // of that, so far
    std::vector<std::pair<HeldShare, std::vector<wire::Descriptor>>> held_shares{};
    size_t held_files = 0;     // in them
    wire::Descriptor socket;   // invalid: closed
    wire::Descriptor process;  // pidfd; invalid: the process counts as ended when the socket closes
    std::unique_ptr<LeaseInProgress> lease;           // waits for memory
    std::chrono::steady_clock::time_point asked{};    // start of the wait of `lease` or `info`
    Drain::Round round;                               // sessions asked to return memory for it
    std::optional<GetInfo> info;                      // waits for other sessions' figures
    std::unique_ptr<InfoPage> page;                   // since its first GetInfo
    bool has_page = false;                            // it was sent
    std::vector<std::byte> later;                     // packet that came during that wait
    std::unique_ptr<LeaseInProgress> grant;           // being sent
    size_t granted = 0;                               // chunks of `grant` that were sent
    std::unique_ptr<SwapIn> back;                     // pending swap-in
    size_t fills = 0;                                 // under way
    uint64_t returned = 0;                            // bytes, since its last Reclaimed
    bool watched = false;                             // was asked to report its work
    std::deque<std::vector<std::byte>> answers;       // that do not fit into the socket yet
    base::PollSet::Entry socket_events, process_end;  // of this pass; none: attached in it
    std::optional<uint64_t> promise{};                // bytes that the warden asks to keep for it
    bool waits() const { return lease != nullptr || info.has_value(); }
    bool blocked() const { return grant != nullptr || !answers.empty() || !later.empty(); }
  };

  // False when there is no message; *open: the warden is still there.
  bool ReadControl(bool* open);
  // Of the operator's policy; false if the packet is none of those (policies.cc).
  bool HandlePolicyPacket(wire::Message& message);
  void ReadSession(KeeperSession& session);
  void HandlePacket(KeeperSession& session, wire::Message& message);
  void HandleRequest(KeeperSession& session, std::span<const std::byte> packet);
  void GreetWorker(KeeperSession& session, wire::VersionRange versions);
  // Workers of a predecessor (reattaching.cc).
  void TakeOver(KeeperSession& session, const Again& again);
  void Settle();
  bool IgnoresUntilHeld(KeeperSession& session, wire::Message& message);
  bool MayLearnOf(const ChunkPool::Token& token) const;
  void HandleShare(KeeperSession& session, const Share& share);
  void AnswerShared(KeeperSession& session, const Share& share, const ChunkPool::Token& token);
  void HandleBorrow(KeeperSession& session, const Borrow& borrow);
  void Answer(KeeperSession& session, std::vector<std::byte> packet);
  void Send(KeeperSession& session);
  // Sends the next chunks of a grant; false if the socket is full or the grant could not be made.
  bool SendGrant(KeeperSession& session);
  void RefuseGrant(KeeperSession& session, int code);
  void RefuseLease(KeeperSession& session);
  // What the warden asks to keep for sessions (promises.cc).
  void TakeAssign(const Assign& assign);
  void StartPromise(KeeperSession& session);
  void AnswerPromise(KeeperSession& session);
  void DropPromise(KeeperSession& session);
  void SendPromised();
  bool AdvanceLeases();  // true if one still waits
  // Whether a lease that the driver has no memory for may get it at once, from a worker that has
  // just ended.
  bool IsGivenBack(const KeeperSession& session) const;
  // Asks sessions for memory for a lease. False: no session is left to ask or to wait for.
  bool Reclaim(KeeperSession& session);
  void HandleReclaimed(KeeperSession& session, Reclaimed answer);
  // What is free, as sessions see it (reclaiming.cc).
  struct Figures {
    // Bytes that sessions would return, or will when they have ended; of all, and by tenant.
    uint64_t more = 0;
    std::map<uint32_t, uint64_t> more_of_tenant{};
    InfoTime until = InfoTime::max();  // they count
    uint64_t first = 0;                // the session whose figure it is, and without that one
    InfoTime until_of_others = InfoTime::max();
  };
  bool Lends(const KeeperSession& session) const;
  Figures AllFigures() const;
  Info InfoOf(const KeeperSession& session, const Figures& all) const;
  bool AnswerInfos();  // true if one still waits
  void AnswerInfo(KeeperSession& session, uint64_t request);
  void WritePage(KeeperSession& session, const Figures& all);
  void WriteOwnPage(KeeperSession& session);
  void WritePages(bool changed);  // perhaps a little later
  std::chrono::milliseconds UntilPagesAreDue() const;
  void AskUnused();
  void SendAsks(std::span<const Drain::Ask> asks);
  // Sessions whose free memory could satisfy the worker's lease.
  std::vector<uint64_t> Lenders(uint64_t worker, bool of_tenant, bool itself = false) const;
  // Swapping (swapping.cc). No session has free memory for the lease: idle sessions are swapped
  // out. False: none can be.
  bool SwapFor(KeeperSession& session);
  bool HandleSwapPacket(KeeperSession& session, std::span<const std::byte> packet);
  // Chunks that are copied from another device (fills.h).
  bool HandleFillPacket(KeeperSession& session, wire::Message& message);
  void TakeFilled(const SwapJob& job);
  void HandleShow(KeeperSession& session, const Show& show);
  bool AdvanceSwaps();  // true if a swap is under way
  void AdvanceSwapIn(KeeperSession& session, bool first, bool* taken);
  void Deliver(KeeperSession& session);
  void TakeMoved();
  void EndLate();
  void SendSwapAsks(std::span<const Swaps::Ask> asks);
  // Chunks that may be swapped out for this session. `order`: of its swap-in, else 0. *later:
  // chunks that may be swapped out once their sessions have what they wait for.
  std::vector<Region> MovableFor(const KeeperSession& session, uint64_t order,
                                 std::vector<Region>* later = nullptr);
  bool LetsGoNow(const KeeperSession& session, const KeeperSession& wants, uint64_t order) const;
  bool LetsGoLater(const KeeperSession& session, const KeeperSession& wants) const;
  bool NeedsMemoryOf(const KeeperSession& wants, const KeeperSession& back) const;
  void AddHostMemory();
  void Watch(KeeperSession& session);
  void CloseSocket(KeeperSession& session);
  void Forget(uint64_t worker);
  void StartScrubbing();
  uint64_t Stock() const;  // bytes to keep ready
  // Keeps scrubbed and exported chunks ready for the next leases.
  bool LacksPrepared() const;
  void Prepare();
  void SendState();
  KeeperCharges Charges();
  void TakeHealth();
  uint64_t Version() const;  // of the figures in SendState
  // One pass: how long it may wait, what it waits for, what became ready.
  std::chrono::milliseconds Patience(std::chrono::milliseconds timeout) const;
  void FillPollSet();
  bool HandleEvents();  // false: the warden has closed the socket

  static PoolOptions WithLog(PoolOptions options, EventLog* events, SwapPolicy* policy);

  DeviceMemory& device_;
  EventLog events_;
  const uint32_t device_number_;  // as the driver counts
  std::unique_ptr<AdvisedSwaps> policy_;
  ChunkPool pool_;
  Drain drain_;
  Swaps swaps_;
  KeeperLimits limits_;
  Quota* const quota_;  // nullptr: no limits
  const bool drains_;   // free memory of sessions is reclaimed for others
  const bool swaps_on_;
  wire::Descriptor control_;
  base::PollSet poll_set_;  // of this pass, filled by FillPollSet
  base::PollSet::Entry control_events_, small_scrubbed_, large_scrubbed_, swapped_, filled_,
      health_events_;
  std::map<uint64_t, KeeperSession> sessions_;            // by worker
  std::deque<std::vector<std::byte>> promised_{};         // answers that the warden lacks
  bool waiting_ = false;                                  // a lease or a GetInfo waits
  bool pages_due_ = false;                                // something changed since
  InfoTime pages_written_{};                              // when they were written
  bool tidying_ = false;                                  // what was returned is not all released
  std::chrono::steady_clock::time_point prepare_from_{};  // earliest time
  Drain::Time next_unused_ = Drain::Time::max();          // next request for unused memory
  uint64_t refused_ = 0;                                  // leases
  std::chrono::steady_clock::time_point gone_at_{};       // the last worker that had memory
  uint64_t remaps_ = 0, remapped_ = 0;  // copies replaced by mapping, and their bytes
  uint64_t swap_in_requests_ = 0;
  uint32_t warden_version_ = 0;
  uint64_t succession_ = 0;  // this keeper among its device's successors; 0: the first
  bool settled_ = false;     // all workers of its predecessor are attached
  std::chrono::steady_clock::time_point settled_at_{};
  uint64_t others_ = 0;  // KeeperCharges::others, at that time
  std::chrono::steady_clock::time_point others_at_{};
  uint64_t pinning_ = 0;      // bytes of host memory being pinned
  bool pin_failed_ = false;   // the host has no more
  uint64_t swapped_out_ = 0;  // bytes
  uint64_t swapped_in_ = 0;
  KeeperState state_;
  HealthWatch health_;
  uint64_t health_version_ = 0;
  uint64_t sent_version_ = 0;
  uint64_t sent_event_ = 0;
  std::chrono::steady_clock::time_point sent_at_{};
  // Last: their threads stop before the pool goes.
  JobThread<ScrubJob> small_scrubber_;
  JobThread<ScrubJob> large_scrubber_;
  JobThread<SwapJob> swap_thread_;
  // Chunks of other devices: mapping one takes many times as long as its copy by NVLink.
  static constexpr size_t kFillThreads = 4;
  JobThread<SwapJob> fill_threads_;
};

}  // namespace longwire::keeper
