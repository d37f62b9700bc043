#include "server/keeper/drain.h"

#include <algorithm>

#include "wire/record.h"

namespace longwire::keeper {

void Drain::Active(uint64_t worker, Time now) {
  auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  Worker& known = found->second;
  known.active = now;
  known.unused_asks = 0;
  // It may be asked again; a late answer to the earlier request is accepted, too.
  if (known.silent) known.request = 0;
  known.silent = false;
}

bool Drain::Waits(Worker& worker, Time now) {
  if (worker.request == 0 || worker.silent) return false;
  if (now - worker.asked < kPatience) return true;
  worker.silent = true;
  worker.idle = 0;
  ++counts_.silent;
  return false;
}

Reclaim Drain::Begin(Worker& worker, Time now, bool for_lease) {
  worker.asked = now;
  worker.request = next_request_++;
  worker.for_lease = for_lease;
  ++counts_.asked;
  Reclaim packet;
  packet.request = worker.request;
  return packet;
}

bool Drain::Advance(Round& round, std::span<const uint64_t> candidates, uint64_t bytes, Time now,
                    std::vector<Ask>* asks) {
  bool waits = false;
  Worker* next = nullptr;
  uint64_t number = 0;
  for (uint64_t candidate : candidates) {
    auto found = workers_.find(candidate);
    if (found == workers_.end()) continue;
    Worker& worker = found->second;
    if (Waits(worker, now)) {
      waits = true;
    } else if (!worker.silent && !round.asked.contains(candidate) &&
               (next == nullptr || worker.active < next->active)) {
      next = &worker;
      number = candidate;
    }
  }
  if (next == nullptr) return waits;
  if (waits && now - round.last < kNextAfter) return true;
  Reclaim packet = Begin(*next, now, true);
  packet.bytes = next->wanted = bytes;
  asks->push_back({number, packet});
  round.asked.insert(number);
  round.last = now;
  return true;
}

bool Drain::Figures(std::span<const uint64_t> candidates, Time asked, Time now,
                    std::vector<Ask>* asks) {
  bool waits = false;
  for (uint64_t candidate : candidates) {
    auto found = workers_.find(candidate);
    if (found == workers_.end()) continue;
    Worker& worker = found->second;
    bool known = worker.answered != Time{} && asked - worker.answered < kFigureAge;
    if (known || worker.watched || worker.silent) continue;
    if (Waits(worker, now)) {
      waits = true;
    } else if (!worker.silent) {
      asks->push_back({candidate, Begin(worker, now, false)});
      asks->back().packet.keep = 1;  // and to report the next change
      waits = true;
    }
  }
  return waits;
}

uint64_t Drain::IdleOf(uint64_t worker) const {
  auto found = workers_.find(worker);
  bool counts = found != workers_.end() && !found->second.silent && !found->second.doubtful;
  return counts ? found->second.idle : 0;
}

Drain::Time Drain::FigureCountsUntil(uint64_t worker) const {
  auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.silent) return Time::max();
  if (found->second.watched) return Time::max();
  if (found->second.answered == Time{}) return Time::min();
  return found->second.answered + kFigureAge;
}

Drain::Time Drain::AskUnused(std::span<const uint64_t> candidates, uint64_t keep,
                             std::chrono::nanoseconds idle_after, Time now,
                             std::vector<Ask>* asks) {
  Time next = Time::max();
  for (uint64_t candidate : candidates) {
    auto found = workers_.find(candidate);
    if (found == workers_.end()) continue;
    Worker& worker = found->second;
    if (Waits(worker, now)) {
      next = std::min(next, worker.asked + kPatience);
      continue;
    }
    if (worker.silent) continue;
    // The first answer starts the period of disuse.
    uint32_t doublings =
        worker.unused_asks < 2 ? 0 : std::min(worker.unused_asks - 1, kMaxDoublings);
    auto pause = idle_after * (uint64_t{1} << doublings);
    Time due = std::max(worker.active, worker.unused_asked) + pause;
    if (now < due) {
      next = std::min(next, due);
      continue;
    }
    Reclaim packet = Begin(worker, now, false);
    packet.bytes = UINT64_MAX;
    packet.keep = keep;
    packet.unused = true;
    asks->push_back({candidate, packet});
    worker.unused_asked = now;
    ++worker.unused_asks;
    next = std::min(next, now + kPatience);
  }
  return next;
}

void Drain::ForgetUnusedAsks() {
  for (auto& [number, worker] : workers_) worker.unused_asks = 0;
}

void Drain::Answered(uint64_t worker, const Reclaimed& answer, Time now) {
  auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  Worker& known = found->second;
  known.silent = false;
  known.idle = answer.idle;
  known.answered = now;
  // A change may be reported before the answer that announces it.
  const uint64_t request = answer.request & ~wire::kWatchesFree;
  known.watched = request != answer.request && request == known.request;
  if (request != known.request) return;
  (known.for_lease ? counts_.drained : counts_.returned) += answer.bytes;
  if (known.for_lease) {
    known.doubtful = answer.bytes < known.wanted && answer.idle != 0;
  } else if (answer.bytes != 0) {
    known.doubtful = false;
  }
  known.request = 0;
}

}  // namespace longwire::keeper
