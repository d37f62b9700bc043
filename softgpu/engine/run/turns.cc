#include "softgpu/engine/run/turns.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "wire/guards.h"

namespace softgpu {
namespace {

// Warp instructions of all the owner's threads, four full slices of a cluster: a kernel that stores
// some megabytes ends within.
constexpr int64_t kUsualTurn = 800'000;
constexpr int64_t kLeast = 1000;  // of a cluster that ran
constexpr size_t kDevices = 64;

int64_t Turn() {
  static const int64_t turn = [] {
    const char* text = std::getenv("LONGWIRE_SOFTGPU_TURN");
    const int64_t given = text != nullptr ? std::atoll(text) : 0;
    return given > 0 ? given : kUsualTurn;
  }();
  return turn;
}

bool TakeTurns() {
  static const bool take = !longwire::wire::GuardIsOff("context_turns");
  return take;
}

}  // namespace

ContextTurns& ContextTurns::Of(int device) {
  static auto& all = *new std::array<ContextTurns, kDevices>;
  return all[static_cast<size_t>(device) % kDevices];
}

void ContextTurns::Enter(Owner owner) {
  if (!TakeTurns()) return;
  base::MutexLock lock(mutex_);
  const bool joins = inside_ != 0 && owner_ == owner && (waiting_.empty() || used_ < Turn());
  if (joins || (inside_ == 0 && waiting_.empty())) {
    if (!joins) used_ = 0;
    owner_ = owner;
    ++inside_;
    return;
  }
  auto party = std::ranges::find(waiting_, owner, &Party::owner);
  if (party == waiting_.end()) {
    waiting_.push_back({owner, ++last_});
    party = std::prev(waiting_.end());
  }
  ++party->threads;
  const uint64_t number = party->number;
  wanted_ = true;
  while (served_ < number) changed_.Wait(lock);
}

void ContextTurns::Leave() {
  if (!TakeTurns()) return;
  base::MutexLock lock(mutex_);
  if (--inside_ != 0 || waiting_.empty()) return;
  const Party next = waiting_.front();
  waiting_.pop_front();
  owner_ = next.owner;
  inside_ = next.threads;
  served_ = next.number;
  wanted_ = !waiting_.empty();
  used_ = 0;
  changed_.NotifyAll();
}

bool ContextTurns::Use(int64_t instructions) {
  const int64_t used = used_.fetch_add(std::max(instructions, kLeast), std::memory_order_relaxed);
  return used + instructions >= Turn() && wanted_.load(std::memory_order_relaxed);
}

}  // namespace softgpu
