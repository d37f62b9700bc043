// Sessions move to other devices of this server so that one gets in that fits nowhere (the key
// `rebalance`, docs/decisions/0086). Which ones is scheduler/placement/rebalance.h's; here it is
// done, within the time for which the program that asks waits.
#include <cstdio>
#include <set>

#include "base/printable.h"
#include "link/transport/log.h"
#include "server/daemon/moving/old_worker.h"
#include "server/daemon/pool/requirements.h"
#include "server/daemon/sessions/session_table.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

// Until when moves begin, from the request on. A link waits for 65 s, a program at the local socket
// for 15, and its worker has to be started after that.
constexpr std::chrono::seconds kPatience{40};
constexpr std::chrono::seconds kLocalPatience{8};
constexpr std::chrono::milliseconds kTurnLook{50};
// Each session that refuses makes another one.
constexpr int kPlansLimit = 16;

std::string GiB(uint64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

}  // namespace

class SessionTable::RoomMaker {
 public:
  RoomMaker(SessionTable& table, const wire::OpenRequest& request, const Peer& peer,
            const std::atomic<bool>& cancelled)
      : table_(table), request_(request), peer_(peer), cancelled_(cancelled) {}
  ~RoomMaker() {
    if (!turn_) return;
    base::MutexLock lock(table_.mutex_);
    table_.making_room_ = false;
  }
  RoomMaker(const RoomMaker&) = delete;
  RoomMaker& operator=(const RoomMaker&) = delete;

  bool Run(PlacedSession* placed) {
    if (!AwaitTurn()) return false;
    placed->kept_by = table_.next_id_.fetch_add(1);
    for (int i = 0; i < kPlansLimit && MayGoOn(); ++i) {
      auto stats = table_.warden_->GetStats(&sentence_);
      if (!stats || !ReadWish(*stats)) return false;
      const PlacementTable::Occupied occupied = table_.placements_.WhoIsWhere(*stats);
      wish_.bytes = std::max(wish_.bytes, occupied.least);
      const auto plan =
          scheduler::PlanRebalance(occupied.devices, Described(occupied.sessions), wish_);
      if (plan.devices.empty()) return false;
      placed->devices = {plan.devices.begin(), plan.devices.end()};
      placed->bytes = wish_.bytes;
      // Nobody else is placed there meanwhile.
      table_.placements_.Keep(placed->kept_by, placed->devices, wish_.bytes);
      const uint64_t refused =
          table_.MoveAll(plan.moves, "to make room for " + Who(), [this] { return MayGoOn(); });
      if (refused == 0) {
        // Somebody else may have made room meanwhile.
        if (plan.moves.empty()) return true;
        Log(LogLevel::kInfo, peer_.subject(),
            "moved " + std::to_string(plan.moves.size()) + " sessions to make room for " + Who());
        return true;
      }
      table_.placements_.Forget(placed->kept_by);
      refused_.insert(refused);
    }
    return false;
  }

 private:
  bool MayGoOn() const { return !cancelled_.load() && Clock::now() < deadline_; }

  bool AwaitTurn() {
    base::MutexLock lock(table_.mutex_);
    while (table_.making_room_) {
      if (!MayGoOn() || table_.ending_) return false;
      table_.changed_.WaitUntil(lock, Clock::now() + kTurnLook);
    }
    return turn_ = table_.making_room_ = true;
  }

  // What it asks for, if that could be given: a tenant's limit is not for moves to stand against.
  bool ReadWish(const warden::Stats& stats) {
    Requirements told;
    const DevicesWish wish = WishOf(*peer_.tenant, request_.environment, stats.devices.size());
    if (!ReadRequirements(request_.environment, &told, &sentence_) || !told.labels.empty()) {
      return false;
    }
    wish_ = {wish.devices, told.bytes};
    for (const warden::TenantStats& tenant : stats.tenants) {
      if (tenant.tenant != peer_.tenant->name() || tenant.limit == UINT64_MAX) continue;
      const uint64_t left = tenant.limit - std::min(tenant.limit, tenant.leased);
      if (wish.devices != 0 && told.bytes > left / wish.devices) return false;
    }
    return wish.devices != 0;
  }

  std::vector<scheduler::Occupant> Described(std::vector<scheduler::Occupant> sessions) const {
    const auto config = table_.live_.Get();
    const std::set<uint64_t> best_effort = table_.scheduling_->BestEffort();
    for (scheduler::Occupant& one : sessions) {
      const auto session = table_.Find(one.session);
      one.best_effort = best_effort.contains(one.session);
      one.stays = session == nullptr || session->moving() || refused_.contains(one.session) ||
                  !BoundToItsPlace(session->client(), *config).empty();
      if (session == nullptr || session->formerly.empty()) continue;
      one.moved =
          std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - session->opened());
    }
    return sessions;
  }

  std::string Who() const {
    return "a session of '" + peer_.identity + "' of the tenant '" + peer_.tenant->name() + "' (" +
           base::Printable(request_.program) + "), which asks for " +
           std::to_string(wish_.devices) + (wish_.devices == 1 ? " device" : " devices") +
           " with " + GiB(wish_.bytes) + " free";
  }

  SessionTable& table_;
  const wire::OpenRequest& request_;
  const Peer& peer_;
  const std::atomic<bool>& cancelled_;
  const Clock::time_point deadline_ = Clock::now() + (peer_.uid ? kLocalPatience : kPatience);
  scheduler::PlacementRequest wish_;
  std::set<uint64_t> refused_;
  std::string sentence_;  // nobody hears it: the refusal from before counts
  bool turn_ = false;
};

bool SessionTable::MakeRoom(const wire::OpenRequest& request, const Peer& peer,
                            const std::atomic<bool>& cancelled, PlacedSession* placed) {
  if (!live_.Get()->rebalance()) return false;
  return RoomMaker(*this, request, peer, cancelled).Run(placed);
}

}  // namespace longwire::daemon
