// Free memory of sessions: reclaimed for leases, counted in what sessions see as free (GetInfo and
// the pages on which its answer stands), and taken back when unused for long.
#include <algorithm>
#include <utility>

#include "server/keeper/keeper.h"
#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::keeper {
namespace {

// How long a query of free memory waits for the other sessions' figures.
constexpr std::chrono::milliseconds kFigurePatience{200};
// The shortest interval of what other sessions change on a page.
constexpr std::chrono::milliseconds kPageInterval{5};
// How long a page counts if other keepers change what its tenant may have, too.
constexpr std::chrono::milliseconds kLedgerAge{20};

// How long the driver may take to get the memory of a process back after its end. Whoever asks for
// more than there is waits for that only behind such an end.
constexpr std::chrono::seconds kGivenBackPatience{2};

const bool kPages = !wire::IsSwitchedOff("info-pages");
const bool kOwnFirst = !wire::GuardIsOff("info_own");

}  // namespace

std::vector<uint64_t> Keeper::Lenders(uint64_t worker, bool of_tenant, bool itself) const {
  std::vector<uint64_t> lenders;
  for (const auto& [other, session] : sessions_) {
    bool counts = !of_tenant || pool_.TenantOf(other) == pool_.TenantOf(worker);
    const bool has = other == worker || pool_.BeyondPromise(other) != 0;
    if ((other != worker || itself) && counts && has && Lends(session)) lenders.push_back(other);
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

bool Keeper::IsGivenBack(const KeeperSession& session) const {
  return session.lease->of_driver && !session.lease->spare &&
         std::chrono::steady_clock::now() - gone_at_ < kGivenBackPatience;
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

// True if the session's free memory can be had for others. A worker that waits for its swap-in does
// not read its client's answers meanwhile.
bool Keeper::Lends(const KeeperSession& session) const {
  return session.socket.valid() && session.back == nullptr &&
         pool_.LeasedBy(session.worker) + pool_.ChargedTo(session.worker) != 0;
}

Keeper::Figures Keeper::AllFigures() const {
  Figures all;
  pool_.AddEnding(&all.more, &all.more_of_tenant);
  for (const auto& [worker, session] : sessions_) {
    if (!drains_ || !Lends(session)) continue;
    uint64_t idle = std::min(drain_.IdleOf(worker), pool_.LeasedBy(worker));
    idle = pool_.ForOthers(worker, idle);
    all.more += idle;
    all.more_of_tenant[pool_.TenantOf(worker)] += idle;
    const InfoTime until = drain_.FigureCountsUntil(worker);
    if (until < all.until) {
      all.until_of_others = std::exchange(all.until, until);
      all.first = worker;
    } else {
      all.until_of_others = std::min(all.until_of_others, until);
    }
  }
  return all;
}

Info Keeper::InfoOf(const KeeperSession& session, const Figures& all) const {
  const uint64_t worker = session.worker;
  // What it keeps free itself its client adds.
  uint64_t own = 0;
  if (drains_ && Lends(session)) own = std::min(drain_.IdleOf(worker), pool_.LeasedBy(worker));
  own = pool_.ForOthers(worker, own);
  auto of_tenant = all.more_of_tenant.find(pool_.TenantOf(worker));
  uint64_t tenants = of_tenant == all.more_of_tenant.end() ? 0 : of_tenant->second;
  return {0, pool_.FreeWith(worker, all.more - own, tenants - std::min(own, tenants)),
          pool_.TotalFor(worker), device_.identity().granularity};
}

void Keeper::WritePage(KeeperSession& session, const Figures& all) {
  if (session.page == nullptr) return;
  InfoTime until = all.first == session.worker ? all.until_of_others : all.until;
  if (quota_ != nullptr && quota_->limit(session.worker) != UINT64_MAX &&
      device_.identity().device_count > 1) {
    until = std::min(until, Drain::Clock::now() + kLedgerAge);
  }
  session.page->Write(InfoOf(session, all), until);
}

// Before an answer that changes what the session itself has.
void Keeper::WriteOwnPage(KeeperSession& session) {
  if (session.page != nullptr && kOwnFirst) WritePage(session, AllFigures());
}

void Keeper::WritePages(bool changed) {
  pages_due_ |= changed;
  const auto now = Drain::Clock::now();
  if (!pages_due_ || now - pages_written_ < kPageInterval) return;
  pages_due_ = false;
  if (std::ranges::none_of(sessions_, [](const auto& s) { return s.second.page != nullptr; })) {
    return;
  }
  pages_written_ = now;
  const Figures all = AllFigures();
  for (auto& [worker, session] : sessions_) WritePage(session, all);
}

std::chrono::milliseconds Keeper::UntilPagesAreDue() const {
  const auto left = pages_written_ + kPageInterval - Drain::Clock::now();
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(left), std::chrono::milliseconds(0));
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
    AnswerInfo(session, session.info->request);
  }
  return waiting;
}

void Keeper::AnswerInfo(KeeperSession& session, uint64_t request) {
  session.info.reset();
  if (session.page == nullptr && kPages && session.version >= kInfoPageSince) {
    session.page = InfoPage::Create();
  }
  const Figures all = AllFigures();
  Info info = InfoOf(session, all);
  info.request = request;
  WritePage(session, all);
  // With a descriptor only at once: what waits for room in the socket has none.
  auto packet = message::Pack(info);
  if (session.page != nullptr && !session.has_page && !session.blocked()) {
    const int file[] = {session.page->descriptor()};
    session.has_page = wire::SendMessage(session.socket.get(), packet, file);
    if (session.has_page) return;
  }
  Answer(session, std::move(packet));
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
