// Swapping memory of idle sessions to host memory when a lease lacks it, and back before their next
// work; and copies from other devices, for sessions that move.
#include <algorithm>
#include <cstdio>

#include "server/keeper/keeper.h"

namespace longwire::keeper {
namespace {

// Host memory is pinned in pieces, so that nothing has to wait for all of it.
constexpr uint64_t kPinAtOnce = uint64_t{256} << 20;

// The interval in which a waiting swap-in requests free memory of others.
constexpr std::chrono::seconds kDrainRound{1};

constexpr const char* kLost = "memory of the session could not be brought back from the host's";

// Copies from other devices, of one worker at a time: each holds a descriptor of the keeper's.
constexpr size_t kMaxFills = 8;

}  // namespace

void Keeper::AddHostMemory() {
  if (!swaps_on_ || pin_failed_ || pinning_ != 0) return;
  uint64_t slot = device_.identity().granularity;
  uint64_t wanted = limits_.swap_host_memory / slot * slot;
  uint64_t have = pool_.host().bytes();
  if (have >= wanted) {
    // Freed parts are scrubbed when there is nothing else to do.
    if (swap_thread_.waiting() != 0 || pool_.host().to_clear() == 0) return;
    SwapJob clear{SwapJob::Kind::kClear};
    clear.parts = pool_.host().NextClears();
    if (!clear.parts.empty()) swap_thread_.Add({clear});
    return;
  }
  SwapJob pin{SwapJob::Kind::kPin};
  pin.bytes = pinning_ = std::min(wanted - have, kPinAtOnce);
  swap_thread_.Add({pin});
}

void Keeper::TakeMoved() {
  std::vector<SwapJob> done = swap_thread_.Take();
  for (SwapJob& job : fill_threads_.Take()) done.push_back(std::move(job));
  for (SwapJob& job : done) {
    uint64_t lost = 0;
    switch (job.kind) {
      case SwapJob::Kind::kPin:
        pinning_ = 0;
        pin_failed_ = job.parts.empty();
        if (pin_failed_) {
          std::fprintf(stderr,
                       "longwire-keeper: of %llu bytes of the host's memory only %llu could "
                       "be pinned\n",
                       static_cast<unsigned long long>(limits_.swap_host_memory),
                       static_cast<unsigned long long>(pool_.host().bytes()));
        }
        for (HostPart& part : job.parts) pool_.host().Add(part.data, part.bytes);
        break;
      case SwapJob::Kind::kClear:
        pool_.host().Cleared(job.parts);
        break;
      case SwapJob::Kind::kFill:
        TakeFilled(job);
        break;
      case SwapJob::Kind::kOut:
      case SwapJob::Kind::kBack: {
        bool out = job.kind == SwapJob::Kind::kOut;
        if (job.code == kSuccess) (out ? swapped_out_ : swapped_in_) += job.bytes;
        if (pool_.Moved(job, &lost)) break;
        auto session = sessions_.find(lost);
        if (session == sessions_.end() || session->second.back == nullptr) break;
        uint64_t request = session->second.back->lease.request;
        session->second.back.reset();
        Answer(session->second, message::Pack(SwapReturned{request, job.code, kLost, false, {}}));
        break;
      }
    }
  }
}

void Keeper::Watch(KeeperSession& session) {
  bool on = swaps_on_ && limits_.swap_host_memory != 0;
  if (!session.socket.valid() || session.watched == on) return;
  session.watched = on;
  Answer(session, message::Pack(SwapWatch{on}));
}

bool Keeper::HandleSwapPacket(KeeperSession& session, std::span<const std::byte> packet) {
  SwapLeft left;
  SwapBack back;
  Ran ran;
  auto now = Swaps::Clock::now();
  if (message::Unpack(packet, &ran) == wire::WireResult::kOk) {
    policy_->Accessed(session.worker);
  } else if (message::Unpack(packet, &left) == wire::WireResult::kOk) {
    std::vector<uint64_t> chunks = swaps_.Answered(session.worker, left, now);
    swap_thread_.Add(pool_.Leave(session.worker, chunks));
  } else if (message::Unpack(packet, &back) == wire::WireResult::kOk) {
    if (session.back != nullptr) return true;
    session.back = std::make_unique<SwapIn>();
    session.back->order = ++swap_in_requests_;
    session.back->lease.worker = session.worker;
    session.back->lease.request = back.request;
    session.back->lease.comes_back = true;
    policy_->Accessed(session.worker);
    uint64_t away = 0;
    for (const Region& region : pool_.Away(session.worker)) away += region.bytes;
    NextLaunches next;
    if (back.next) {
      next.count = back.next->launches;
      std::ranges::copy(back.next->kernels, next.kernels.begin());
    }
    session.back->stay = policy_->Runs(session.worker, away, next);
  } else {
    return false;
  }
  return true;
}

// A session that waits for its swap-in gives up the rest of its memory to sessions that asked
// before it, and to a lease of one whose memory it waits for: else two half-swapped sessions would
// deadlock.
bool Keeper::LetsGoNow(const KeeperSession& session, const KeeperSession& wants,
                       uint64_t order) const {
  if (session.waits() || session.blocked() || pool_.IsMoving(session.worker)) return false;
  if (session.back == nullptr) return true;
  if (session.back->begun) return false;
  return order != 0 ? session.back->order > order : NeedsMemoryOf(wants, session);
}

// Memory of a session that is being swapped in, or whose lease came before, is available
// afterwards. No session waits for one that waits for it.
bool Keeper::LetsGoLater(const KeeperSession& session, const KeeperSession& wants) const {
  if (session.lease != nullptr) return session.asked < wants.asked;
  return session.back == nullptr || !NeedsMemoryOf(wants, session);
}

bool Keeper::NeedsMemoryOf(const KeeperSession& wants, const KeeperSession& back) const {
  uint64_t others = 0;
  for (const auto& [worker, session] : sessions_) {
    if (worker == wants.worker || worker == back.worker) continue;
    bool waits_behind = session.lease != nullptr && session.asked >= wants.asked;
    if (!waits_behind) others += pool_.LeasedBy(worker);
  }
  return others < back.back->lease.lacks;
}

std::vector<Region> Keeper::MovableFor(const KeeperSession& wants, uint64_t order,
                                       std::vector<Region>* later) {
  std::vector<Region> movable;
  std::map<uint32_t, uint64_t> here;  // bytes of a tenant's
  for (const auto& [worker, session] : sessions_) {
    here[pool_.TenantOf(worker)] += pool_.LeasedBy(worker);
  }
  auto then = here;
  for (const auto& [worker, session] : sessions_) {
    if (worker == wants.worker || !session.socket.valid()) continue;
    bool now = LetsGoNow(session, wants, order);
    if (!now && (later == nullptr || !LetsGoLater(session, wants))) continue;
    if (quota_ != nullptr && quota_->latency_critical(worker)) continue;
    uint32_t tenant = pool_.TenantOf(worker);
    bool own = tenant == pool_.TenantOf(wants.worker);
    uint64_t reserved = quota_ == nullptr || own ? 0 : quota_->reservation(worker);
    for (const Region& region : pool_.Movable(worker, !now)) {
      uint64_t& left = (now ? here : then)[tenant];
      if (left < reserved + region.bytes) continue;  // reserved
      left -= region.bytes;
      if (now) then[tenant] -= std::min(then[tenant], region.bytes);
      (now ? movable : *later).push_back(region);
    }
  }
  return movable;
}

bool Keeper::SwapFor(KeeperSession& session) {
  LeaseInProgress& lease = *session.lease;
  if (!swaps_on_ || pool_.host().bytes() == 0 || lease.lacks == 0) return false;
  if (lease.spare || lease.of_tenant) return false;
  uint64_t has = pool_.LeasedBy(session.worker) + pool_.SwappedBy(session.worker), need = 0;
  const uint64_t kept = pool_.PromisedToOthers(session.worker);
  for (uint64_t size : lease.sizes) need += size;
  const uint64_t most = pool_.lendable() - std::min(pool_.lendable(), kept);
  if (lease.promises ? pool_.LacksToComeBack(session.worker, need) != 0 : has + need > most) {
    lease.sentence = "the session would have " + std::to_string(has + need) +
                     " bytes, more than the device's " + std::to_string(pool_.lendable()) +
                     (kept == 0 ? "" : " without what is kept for others, " + std::to_string(kept));
    return false;
  }
  Swaps::Want want{lease.lacks, pool_.host().room(), pool_.leaving(), false, {}};
  want.movable = MovableFor(session, 0, &want.later);
  want.later_room = pool_.host().room() + pool_.coming();
  // Keeps room for one chunk: without it, sessions could not exchange memory chunk by chunk.
  uint64_t largest = std::ranges::max(lease.sizes);
  for (const Region& region : want.movable) largest = std::max(largest, region.bytes);
  for (const Region& region : want.later) largest = std::max(largest, region.bytes);
  want.room -= std::min(want.room, largest);
  want.later_room -= std::min(want.later_room, largest);
  std::vector<Swaps::Ask> asks;
  auto now = Swaps::Clock::now();
  Swaps::Hope hope = swaps_.Advance(want, now, &asks);
  SendSwapAsks(asks);
  if (hope == Swaps::Hope::kNone) return false;
  bool coming = hope == Swaps::Hope::kComing;
  return now - session.asked < (coming ? swaps_.times().lease_in_all : swaps_.times().lease);
}

void Keeper::SendSwapAsks(std::span<const Swaps::Ask> asks) {
  for (const Swaps::Ask& ask : asks) Answer(sessions_.at(ask.worker), message::Pack(ask.packet));
}

// An idle worker that does not release its memory is ended: it is defective, or was stopped.
void Keeper::EndLate() {
  auto now = Swaps::Clock::now();
  for (auto& [worker, session] : sessions_) {
    if (session.blocked()) swaps_.Extend(worker, now);
  }
  for (uint64_t worker : swaps_.Late(now)) {
    auto seconds = std::chrono::duration<double>(swaps_.times().answer).count();
    EndWorker end{worker,
                  "was ended: another session needs memory of the device, and it did not "
                  "let go of its own within " +
                      std::to_string(seconds).substr(0, 4) + " s"};
    (void)wire::SendMessage(control_.get(), message::Pack(end));
    auto session = sessions_.find(worker);
    if (session != sessions_.end()) CloseSocket(session->second);
  }
}

bool Keeper::AdvanceSwaps() {
  if (!swaps_on_) return false;
  EndLate();
  std::vector<KeeperSession*> coming;
  bool asked = false;
  for (auto& [worker, session] : sessions_) {
    asked |= swaps_.IsAsked(worker);
    if (session.back != nullptr && session.socket.valid()) coming.push_back(&session);
  }
  std::ranges::sort(coming, {}, [](const KeeperSession* session) { return session->back->order; });
  bool first = true;
  bool taken = false;  // free memory belongs to an earlier request
  for (KeeperSession* session : coming) {
    // Asking it for memory on another one's behalf may have shown that it is gone.
    if (session->back == nullptr) continue;
    AdvanceSwapIn(*session, first, &taken);
    first = false;
  }
  return asked || !coming.empty();
}

void Keeper::AdvanceSwapIn(KeeperSession& session, bool first, bool* taken) {
  SwapIn& back = *session.back;
  if (swaps_.IsAsked(session.worker)) return;  // its swap-out comes first
  bool moving = pool_.IsMoving(session.worker);
  std::vector<Region> order = policy_->Prefetch(pool_.Away(session.worker));
  auto now = Swaps::Clock::now();
  if (order.empty()) {
    if (!moving && session.grant == nullptr) Deliver(session);
    return;
  }
  if (moving && !back.begun) return;  // still being swapped out
  if (*taken) return;
  size_t before = back.lease.chunks.size();
  std::vector<SwapJob> jobs = pool_.ComeBack(order, !first && !back.begun, &back.lease);
  if (back.lease.chunks.size() != before && !back.begun) {
    back.begun = true;
    back.since = now;
  }
  swap_thread_.Add(std::move(jobs));
  if (back.lease.lacks == 0) return;
  if (now - back.round_begun > kDrainRound) back.round = {};
  if (back.round.asked.empty()) back.round_begun = now;
  std::vector<Drain::Ask> drains;
  bool drained = drains_ && drain_.Advance(back.round, Lenders(session.worker, false),
                                           back.lease.lacks, now, &drains);
  SendAsks(drains);
  *taken = drained;
  if (drained) return;
  Swaps::Want want{back.lease.lacks, pool_.host().room(), pool_.leaving(), true,
                   MovableFor(session, back.order)};
  std::vector<Swaps::Ask> asks;
  Swaps::Hope hope = swaps_.Advance(want, now, &asks);
  *taken = hope == Swaps::Hope::kComing;
  // The wait for other sessions' stay is no part of the swap-in time: else each session would stay
  // a little longer than the previous one.
  if (hope == Swaps::Hope::kLater) back.since = now;
  SendSwapAsks(asks);
}

void Keeper::Deliver(KeeperSession& session) {
  auto back = std::move(session.back);
  auto now = Swaps::Clock::now();
  if (back->begun) swaps_.CameBack(session.worker, back->since, now, back->stay);
  session.grant = std::make_unique<LeaseInProgress>(std::move(back->lease));
  session.granted = 0;
  Send(session);
}

bool Keeper::HandleFillPacket(KeeperSession& session, wire::Message& message) {
  Fill fill;
  Show show;
  if (message::Unpack(message.bytes, &show) == wire::WireResult::kOk) {
    HandleShow(session, show);
    return true;
  }
  if (message::Unpack(message.bytes, &fill) != wire::WireResult::kOk) return false;
  std::optional<SwapJob> job;
  if (message.descriptors.size() == 1 && session.fills < kMaxFills) {
    job = pool_.StartFill(session.worker, fill.chunk);
  }
  if (!job) {
    Answer(session, message::Pack(Filled{fill.request, kInvalidValue}));
    return true;
  }
  ++session.fills;
  job->worker = session.worker;
  job->request = fill.request;
  job->from = std::make_shared<wire::Descriptor>(std::move(message.descriptors[0]));
  fill_threads_.Add({std::move(*job)});
  return true;
}

void Keeper::TakeFilled(const SwapJob& job) {
  pool_.EndFill(job);
  auto session = sessions_.find(job.worker);
  if (session == sessions_.end()) return;
  --session->second.fills;
  if (session->second.socket.valid()) {
    Answer(session->second, message::Pack(Filled{job.request, job.code}));
  }
}

void Keeper::HandleShow(KeeperSession& session, const Show& show) {
  if (session.waits() || !pool_.MayShow(session.worker, show.chunk)) {
    Answer(session,
           message::Pack(Refuse{show.request, kInvalidValue,
                                "the session has no such memory on the device", pool_.free()}));
    return;
  }
  session.grant = std::make_unique<LeaseInProgress>();
  session.grant->worker = session.worker;
  session.grant->request = show.request;
  session.grant->chunks = {show.chunk};
  session.grant->shows = true;
  session.granted = 0;
  Send(session);
}

}  // namespace longwire::keeper
