// Free memory of sessions: reclaimed for leases, counted for queries of free memory, and taken back
// when unused for long.
#include <algorithm>
#include <utility>

#include "server/keeper/keeper.h"

namespace longwire::keeper {
namespace {

// How long a query of free memory waits for the other sessions' figures.
constexpr std::chrono::milliseconds kFigurePatience{200};

}  // namespace

std::vector<uint64_t> Keeper::Lenders(uint64_t worker, bool of_tenant, bool itself) const {
  std::vector<uint64_t> lenders;
  for (const auto& [other, session] : sessions_) {
    bool counts = !of_tenant || pool_.TenantOf(other) == pool_.TenantOf(worker);
    // A worker that waits for its swap-in does not read its client's answers meanwhile.
    bool answers = session.socket.valid() && session.back == nullptr;
    if ((other != worker || itself) && counts && answers &&
        pool_.LeasedBy(other) + pool_.ChargedTo(other) != 0) {
      lenders.push_back(other);
    }
  }
  return lenders;
}

bool Keeper::Reclaim(KeeperSession& session) {
  LeaseInProgress& lease = *session.lease;
  if (!drains_ || lease.lacks == 0 || lease.spare) return false;
  std::vector<Drain::Ask> asks;
  // A client knows what it has free before it asks for a lease; for other memory it does not.
  auto lenders = Lenders(session.worker, lease.of_tenant, lease.charges);
  bool waits = drain_.Advance(session.round, lenders, lease.lacks, Drain::Clock::now(), &asks);
  SendAsks(asks);
  return waits;
}

// Figures of a client are not trusted: it gave back what the pool got, and keeps no more free than
// it has.
void Keeper::HandleReclaimed(KeeperSession& session, Reclaimed answer) {
  answer.bytes = std::min(answer.bytes, std::exchange(session.returned, 0));
  answer.idle = std::min(answer.idle, pool_.LeasedBy(session.worker));
  DrainCounts before = drain_.counts();
  drain_.Answered(session.worker, answer, Drain::Clock::now());
  uint64_t drained = drain_.counts().drained - before.drained;
  uint64_t unused = drain_.counts().returned - before.returned;
  if (drained != 0) events_.Add(MemoryEventKind::kDrain, session.worker, drained);
  if (unused != 0) events_.Add(MemoryEventKind::kUnused, session.worker, unused);
}

bool Keeper::AnswerInfos() {
  bool waiting = false;
  auto now = Drain::Clock::now();
  for (auto& [worker, session] : sessions_) {
    if (!session.info) continue;
    std::vector<uint64_t> lenders = drains_ ? Lenders(worker, false) : std::vector<uint64_t>{};
    std::vector<Drain::Ask> asks;
    if (now - session.asked < kFigurePatience &&
        drain_.Figures(lenders, session.asked, now, &asks)) {
      SendAsks(asks);
      waiting = true;
      continue;
    }
    uint64_t idle = 0, of_tenant = 0;
    for (uint64_t lender : lenders) {
      uint64_t keeps = std::min(drain_.IdleOf(lender), pool_.LeasedBy(lender));
      idle += keeps;
      if (pool_.TenantOf(lender) == pool_.TenantOf(worker)) of_tenant += keeps;
    }
    Info info{session.info->request, pool_.FreeFor(worker, idle, of_tenant), pool_.TotalFor(worker),
              device_.identity().granularity};
    session.info.reset();
    Answer(session, message::Pack(info));
  }
  return waiting;
}

void Keeper::AskUnused() {
  next_unused_ = Drain::Time::max();
  if (limits_.session_idle == UINT64_MAX) return;
  std::vector<uint64_t> keepers;
  for (const auto& [worker, session] : sessions_) {
    bool leases = session.waits() || session.grant != nullptr;
    if (session.socket.valid() && !leases && pool_.LeasedBy(worker) > limits_.session_idle) {
      keepers.push_back(worker);
    }
  }
  std::vector<Drain::Ask> asks;
  next_unused_ =
      drain_.AskUnused(keepers, limits_.session_idle, std::chrono::nanoseconds(limits_.idle_after),
                       Drain::Clock::now(), &asks);
  SendAsks(asks);
}

void Keeper::SendAsks(std::span<const Drain::Ask> asks) {
  for (const Drain::Ask& ask : asks) {
    auto session = sessions_.find(ask.worker);
    if (session == sessions_.end()) continue;
    Answer(session->second, message::Pack(ask.packet));
    if (ask.packet.bytes == 0 || ask.packet.unused) continue;
    events_.Add(MemoryEventKind::kAsk, ask.worker, ask.packet.bytes);
  }
}

}  // namespace longwire::keeper
