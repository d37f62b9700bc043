#include "server/keeper/swaps.h"

#include <algorithm>
#include <utility>

namespace longwire::keeper {

bool Swaps::IsAsked(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found != workers_.end() && found->second.request != 0;
}

bool Swaps::MayBeAsked(uint64_t worker, Time now) const {
  auto found = workers_.find(worker);
  return found == workers_.end() || (found->second.request == 0 && now >= found->second.not_before);
}

bool Swaps::IsHopeless(uint64_t worker) const {
  auto found = workers_.find(worker);
  return found != workers_.end() && (found->second.never || found->second.late);
}

std::vector<Region> Swaps::Victims(const Want& want, std::span<const Region> movable) {
  if (!want.partly) return policy_.Victims(want.bytes, want.room, movable);
  // All of it must be available, or the first part would be swapped out in vain.
  if (policy_.Victims(want.bytes, UINT64_MAX, movable).empty()) return {};
  std::vector<Region> victims;
  for (uint64_t bytes = std::min(want.bytes, want.room); bytes != 0 && victims.empty();) {
    victims = policy_.Victims(bytes, want.room, movable);
    bytes /= 2;
  }
  return victims;
}

Swaps::Hope Swaps::Advance(const Want& want, Time now, std::vector<Ask>* asks) {
  uint64_t leaving = want.leaving;
  for (const auto& [number, worker] : workers_) {
    if (worker.request != 0 && !worker.late) leaving += worker.bytes;
  }
  if (leaving != 0) return Hope::kComing;
  std::vector<Region> now_movable, ever_movable;
  for (const Region& region : want.movable) {
    if (IsHopeless(region.owner)) continue;
    ever_movable.push_back(region);
    if (MayBeAsked(region.owner, now)) now_movable.push_back(region);
  }
  for (const Region& region : want.later) {
    if (!IsHopeless(region.owner)) ever_movable.push_back(region);
  }
  std::vector<Region> victims = Victims(want, now_movable);
  for (const Region& region : victims) {
    Worker& worker = workers_[region.owner];
    if (worker.request == 0) {
      worker.request = next_request_++;
      worker.asked = now;
      worker.bytes = 0;
      worker.chunks.clear();
      auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(times_.idle);
      asks->push_back({region.owner, {worker.request, static_cast<uint32_t>(idle.count()), {}}});
    }
    if (worker.chunks.size() >= kMaxChunksPerSwap) continue;  // the rest follows
    worker.bytes += region.bytes;
    worker.chunks.push_back(region.id);
  }
  for (Ask& ask : *asks) ask.packet.chunks = workers_[ask.worker].chunks;
  if (!victims.empty()) return Hope::kComing;
  Want ever{want.bytes, std::max(want.room, want.later_room), 0, want.partly, {}};
  return Victims(ever, ever_movable).empty() ? Hope::kNone : Hope::kLater;
}

std::vector<uint64_t> Swaps::Answered(uint64_t worker, const SwapLeft& answer, Time now) {
  auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.request == 0 ||
      found->second.request != answer.request) {
    return {};
  }
  Worker& known = found->second;
  known.request = 0;
  if (answer.answer == static_cast<uint32_t>(SwapAnswer::kLeft)) return std::move(known.chunks);
  known.never = answer.answer == static_cast<uint32_t>(SwapAnswer::kNever);
  known.not_before = std::max(known.not_before, now + times_.pause);
  if (!known.never) policy_.Accessed(worker);
  return {};
}

void Swaps::CameBack(uint64_t worker, Time since, Time now, Clock::duration stay) {
  workers_[worker].not_before = now + std::max({Clock::duration(times_.stay), now - since, stay});
}

void Swaps::Extend(uint64_t worker, Time now) {
  auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.asked = now;
}

std::vector<uint64_t> Swaps::Late(Time now) {
  std::vector<uint64_t> late;
  for (auto& [number, worker] : workers_) {
    if (worker.request == 0 || worker.late || now - worker.asked < times_.answer) continue;
    worker.late = true;
    late.push_back(number);
  }
  return late;
}

}  // namespace longwire::keeper
