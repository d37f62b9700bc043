#include "server/pool/ages.h"

#include <algorithm>

namespace longwire::pool {
namespace {

// Fronts take no more requests than that, so it is reached by those alone who come and go.
constexpr size_t kMaxKnownWaiters = 20000;

}  // namespace

Ages::Ages(std::chrono::seconds grace)
    : grace_(grace),
      calendar_(static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count()) -
                Seconds(Clock::now())) {}

uint64_t Ages::SinceOf(const Waiter& waiter) const {
  auto known = waiters_.find(waiter.number);
  return known == waiters_.end() ? 0 : calendar_ + Seconds(known->second.since);
}

uint64_t Ages::Seconds(Clock::time_point time) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

void Ages::Clear() {
  waiters_.clear();
  claims_.clear();
}

void Ages::Look(const Directory& directory, Clock::time_point now) {
  now_ = now;
  for (const auto& [key, waiter] : directory.waiters) {
    auto [known, is_new] = waiters_.try_emplace(waiter.number);
    Known& one = known->second;
    // The number alone proves nothing: another program may have said it.
    if (is_new || one.ticket_hash != waiter.request.ticket_hash()) {
      one = {static_cast<uint64_t>(waiter.created), waiter.request.ticket_hash(), now, now};
    }
    one.seen = now;
  }
  std::erase_if(waiters_, [&](const auto& one) {
    return now - one.second.seen > grace_ || directory.owners.contains(one.first);
  });
  if (waiters_.size() > kMaxKnownWaiters) {
    std::erase_if(waiters_, [&](const auto& one) { return one.second.seen != now; });
  }
  std::map<std::string, Clock::time_point> claims;
  for (const auto& [host, all] : directory.claims) {
    for (const auto& [number, claim] : all) {
      if (claim.time_limit() == 0) continue;
      auto known = claims_.find(number);
      claims[number] = known == claims_.end() ? now : known->second;
    }
  }
  claims_ = std::move(claims);
}

void Ages::Fill(const Waiter& waiter, scheduler::pool::Wish* wish) const {
  auto known = waiters_.find(waiter.number);
  if (known == waiters_.end()) return;
  wish->age = known->second.age;
  wish->waited = Seconds(now_) - Seconds(known->second.since);
}

void Ages::Fill(const Directory& directory, scheduler::pool::HostState* host) const {
  auto all = directory.claims.find(host->name);
  if (all == directory.claims.end()) return;
  for (const auto& [number, claim] : all->second) {
    host->programs.insert(scheduler::pool::KindOf(claim.tenant(), claim.program()));
    ++host->identities[claim.identity()];
    scheduler::pool::Held& held = host->held[claim.tenant()];
    ++held.sessions;
    held.bytes += claim.bytes() * static_cast<uint64_t>(claim.devices_size());
    auto known = claims_.find(number);
    const uint64_t ends = known == claims_.end() ? scheduler::pool::kNever
                                                 : Seconds(known->second) + claim.time_limit();
    for (scheduler::pool::DeviceState& device : host->devices) {
      if (std::ranges::count(claim.devices(), device.ordinal) == 0) continue;
      device.ends = std::max(device.ends, ends);
    }
  }
}

}  // namespace longwire::pool
