#include "server/admission/openings.h"

#include <algorithm>
#include <thread>

#include "wire/guards.h"

namespace longwire::admission {
namespace {

// Beyond this number those that are as new are forgotten.
constexpr size_t kRemembered = 1024;
constexpr std::chrono::milliseconds kCancelLook{50};

}  // namespace

void Openings::Forget(Clock::time_point now) {
  if (identities_.size() < kRemembered) return;
  std::erase_if(identities_, [&](auto& entry) { return entry.second.IsFull(now); });
}

bool Openings::Reserve(const std::string& identity, Rate rate, Clock::time_point now,
                       Clock::duration* wait) {
  base::MutexLock lock(mutex_);
  Forget(now);
  auto [entry, is_new] = identities_.try_emplace(identity, rate.per_second, rate.at_once, now);
  if (!is_new) entry->second.Change(rate.per_second, rate.at_once);
  *wait = entry->second.Reserve(now, kPatience);
  if (wire::GuardIsOff("opening_rate")) *wait = {};
  if (wait->count() >= 0) return true;
  refused_.fetch_add(1);
  return false;
}

bool Openings::Await(const std::string& identity, Rate rate, const std::atomic<bool>& cancelled) {
  base::AssertNoRankedLockHeld();
  Clock::duration wait{};
  const Clock::time_point now = Clock::now();
  if (!Reserve(identity, rate, now, &wait)) return false;
  const Clock::time_point end = now + wait;
  while (!cancelled.load()) {
    auto left = end - Clock::now();
    if (left.count() <= 0) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, kCancelLook));
  }
  return false;
}

}  // namespace longwire::admission
