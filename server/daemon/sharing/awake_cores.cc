#include "server/daemon/sharing/awake_cores.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "wire/guards.h"
#include "wire/switches.h"

namespace longwire::daemon {
namespace {

// Changes when the session does anything on a device.
uint64_t CallsOf(gates::GatePage& page) {
  uint64_t calls = 0;
  for (uint32_t i = 0; i < page.devices(); ++i) calls += page.device(i).calls.load();
  return calls;
}

}  // namespace

AwakeCores::AwakeCores(uint32_t cores, std::chrono::milliseconds turn)
    : switched_off_(wire::IsSwitchedOff("awake")), turn_(turn), cores_(switched_off_ ? 0 : cores) {
  thread_ = std::thread([this] { Loop(); });
}

AwakeCores::~AwakeCores() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

uint64_t AwakeCores::Seat::spent() const {
  const uint64_t worker = page->awake_spent().load();
  return worker - std::min(worker, inherited) + grant->spent.load();
}

std::shared_ptr<AwakeGrant> AwakeCores::Enter(uint64_t id, const Wish& wish,
                                              std::shared_ptr<gates::GatePage> page) {
  base::MutexLock lock(mutex_);
  Seat& seat = seats_[id];
  seat.wish = wish;
  seat.page = std::move(page);
  seat.calls = CallsOf(*seat.page);
  seat.inherited = seat.page->awake_spent().load();
  std::shared_ptr<AwakeGrant> grant = seat.grant;
  seat.best_effort = best_effort_.contains(wish.tenant);
  if (seat.awake().count() != 0) ShareLocked();
  return grant;
}

void AwakeCores::Leave(uint64_t id) {
  base::MutexLock lock(mutex_);
  auto found = seats_.find(id);
  if (found == seats_.end()) return;
  const uint64_t spent = found->second.spent();
  if (spent != 0) accounts_[found->second.wish.tenant].ended += spent;
  Set(found->second, false);
  const bool wanted = found->second.awake().count() != 0;
  seats_.erase(found);
  if (wanted) ShareLocked();
}

void AwakeCores::SetCores(uint32_t cores) {
  base::MutexLock lock(mutex_);
  cores_ = switched_off_ ? 0 : cores;
  ShareLocked();
}

void AwakeCores::SetTenant(const std::string& tenant, std::chrono::nanoseconds awake) {
  base::MutexLock lock(mutex_);
  for (auto& [id, seat] : seats_) {
    if (seat.wish.tenant == tenant) seat.wish.awake = awake;
  }
  ShareLocked();
}

bool AwakeCores::SetBestEffort(std::set<std::string> tenants) {
  base::MutexLock lock(mutex_);
  best_effort_ = std::move(tenants);
  bool changes = false;
  for (auto& [id, seat] : seats_) {
    const auto before = seat.awake();
    seat.best_effort = best_effort_.contains(seat.wish.tenant);
    changes |= seat.awake() != before;
  }
  if (changes) ShareLocked();
  return changes;
}

void AwakeCores::Share() {
  base::MutexLock lock(mutex_);
  LookForActivity();
  ShareLocked();
}

void AwakeCores::Loop() {
  base::MutexLock lock(mutex_);
  while (!ending_) {
    if (!contended_) {
      changed_.Wait(lock);
      continue;
    }
    const auto until = std::chrono::steady_clock::now() + turn_;
    while (!ending_ && changed_.WaitUntil(lock, until)) {
    }
    LookForActivity();
    ShareLocked();
  }
}

// A turn is over: whoever had cores and used them is charged for it.
void AwakeCores::LookForActivity() {
  for (auto& [id, seat] : seats_) {
    const uint64_t calls = CallsOf(*seat.page);
    seat.active = std::exchange(seat.calls, calls) != calls;
    if (!seat.granted || !seat.active) continue;
    seat.turns += seat.threads();
    accounts_[seat.wish.tenant].turns += seat.threads();
  }
}

void AwakeCores::Admit() {
  std::map<std::string, std::optional<uint64_t>> least;  // turns of a tenant's active sessions
  for (auto& [id, seat] : seats_) {
    if (seat.awake().count() == 0 || !seat.active || !seat.admitted) continue;
    std::optional<uint64_t>& turns = least[seat.wish.tenant];
    turns = std::min(turns.value_or(UINT64_MAX), seat.turns);
  }
  std::optional<uint64_t> least_of_all;
  for (auto& [tenant, account] : accounts_) {
    if (account.active && least.contains(tenant)) {
      least_of_all = std::min(least_of_all.value_or(UINT64_MAX), account.turns);
    }
  }
  for (auto& [tenant, account] : accounts_) {
    if (!account.active) account.turns = std::max(account.turns, least_of_all.value_or(0));
    account.active = false;
  }
  for (auto& [id, seat] : seats_) {
    const std::string& tenant = seat.wish.tenant;
    const bool before = std::exchange(seat.admitted, seat.active);
    if (seat.awake().count() == 0 || !seat.active) continue;
    Account& account = accounts_.try_emplace(tenant, least_of_all.value_or(0)).first->second;
    account.active = true;
    if (!before && least.contains(tenant)) seat.turns = std::max(seat.turns, *least[tenant]);
  }
}

void AwakeCores::ShareLocked() {
  Admit();
  std::vector<std::pair<uint64_t, Seat*>> wanting;
  uint32_t wanted = 0;
  for (auto& [id, seat] : seats_) {
    if (seat.awake().count() == 0) {
      Set(seat, false);
      continue;
    }
    wanting.emplace_back(id, &seat);
    wanted += seat.threads();
  }
  std::ranges::sort(wanting, {}, [&](const auto& one) {
    mutex_.AssertHeld();
    const Seat& seat = *one.second;
    return std::tuple(!seat.active, accounts_[seat.wish.tenant].turns, seat.turns, one.first);
  });
  uint32_t left = wire::GuardIsOff("awake_cores") ? UINT32_MAX : cores_;
  in_use_ = 0;
  for (auto& [id, seat] : wanting) {
    const bool fits = seat->threads() <= left;
    if (fits) {
      left -= seat->threads();
      in_use_ += seat->threads();
    }
    Set(*seat, fits);
  }
  const bool contended = wanted > cores_ && cores_ != 0;
  if (std::exchange(contended_, contended) != contended) changed_.NotifyAll();
}

void AwakeCores::Set(Seat& seat, bool granted) {
  const uint64_t allowed = granted ? static_cast<uint64_t>(seat.awake().count()) : 0;
  seat.granted = granted;
  seat.grant->wanted = static_cast<uint64_t>(seat.awake().count());
  seat.grant->allowed = allowed;
  seat.page->awake() = allowed;
}

uint32_t AwakeCores::cores() {
  base::MutexLock lock(mutex_);
  return cores_;
}

uint32_t AwakeCores::cores_in_use() {
  base::MutexLock lock(mutex_);
  return in_use_;
}

std::map<uint64_t, AwakeFigures> AwakeCores::Sessions() {
  base::MutexLock lock(mutex_);
  std::map<uint64_t, AwakeFigures> all;
  for (auto& [id, seat] : seats_) {
    all[id] = {seat.awake(), seat.granted, std::chrono::nanoseconds(seat.spent())};
  }
  return all;
}

std::map<std::string, std::chrono::nanoseconds> AwakeCores::Spent() {
  base::MutexLock lock(mutex_);
  std::map<std::string, std::chrono::nanoseconds> all;
  for (auto& [tenant, account] : accounts_) all[tenant] += std::chrono::nanoseconds(account.ended);
  for (auto& [id, seat] : seats_) {
    all[seat.wish.tenant] += std::chrono::nanoseconds(seat.spent());
  }
  return all;
}

}  // namespace longwire::daemon
