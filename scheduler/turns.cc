// From a turn's beginning to its end. devices.cc has who comes next.
#include "scheduler/turns.h"

#include <algorithm>
#include <utility>

namespace longwire::scheduler {

void Turns::Advance(Time now) {
  now_ = now;
  while (!timers_.empty() && std::get<Time>(*timers_.begin()) <= now_) {
    Gang& gang = *std::get<Gang*>(*timers_.begin());
    WakeAt(gang, kForever);
    Unsettle(*gang.turn.devices.front());
  }
  Settle();
}

std::optional<Time> Turns::next() const {
  if (timers_.empty()) return std::nullopt;
  return std::get<Time>(*timers_.begin());
}

void Turns::WakeAt(Gang& gang, Time time) {
  if (gang.wake_at == time) return;
  if (gang.wake_at != kForever) timers_.erase({gang.wake_at, gang.id, &gang});
  if (time != kForever) timers_.emplace(time, gang.id, &gang);
  gang.wake_at = time;
}

void Turns::OnUse(Seat& seat, Time used) {
  Gang& gang = *seat.session->gang;
  const Time ahead = std::exchange(seat.ahead, Time{0});
  const bool leads = gang.turn.devices.size() > 1 && gang.turn.devices.front() == seat.device;
  if (gang.home != seat.device && !leads) return;
  used = std::min(used, now_ - std::max(seat.reported_at, gang.charged_from));
  gang.idle_credit = std::min(gang.idle_credit + used * options_.idle_times,
                              options_.turn_length * options_.idle_times);
  if (leads) return;  // wide gangs are served by turns
  gang.turn.charged += used - ahead;
  seat.device->queue.Charge(*gang.tenant, used - ahead);
}

// What runs is charged as time passes: reports may be 100 ms apart, and a decision is about now.
void Turns::ChargeAhead(Gang& gang) {
  if (gang.running == 0 || gang.home == nullptr) return;
  std::vector<Seat*> running;
  for (ScheduledSession* session : gang.sessions) {
    for (Seat& seat : session->seats) {
      if (seat.device == gang.home && seat.activity == Activity::kRunning) running.push_back(&seat);
    }
  }
  for (Seat* seat : running) {
    const Time since = std::max({seat->reported_at, gang.charged_from, gang.turn.opened_at});
    const Time used = (now_ - since) / static_cast<int64_t>(running.size());
    gang.turn.charged += used - seat->ahead;
    gang.home->queue.Charge(*gang.tenant, used - seat->ahead);
    seat->ahead = used;
  }
}

// The device's order as it is now.
FairQueue& Turns::QueueOf(Device& device) {
  if (device.holder != nullptr) ChargeAhead(*device.holder);
  device.queue.Advance(now_);
  return device.queue;
}

// Whether the gang whose turn it is would have the next one, too, if it wanted it.
bool Turns::IsNext(Gang& gang, Time slack) {
  if (gang.turn.devices.size() > 1) {
    const Ticket ticket = NextTicket(gang);
    return std::ranges::all_of(gang.turn.devices, [&](const Device* device) {
      return device->queue.empty() &&
             (device->wide.empty() || ticket < device->wide.begin()->first);
    });
  }
  if (gang.home == nullptr || !gang.home->wide.empty()) return false;
  return QueueOf(*gang.home).ServedIsNext(slack);
}

void Turns::OnActivity(Seat& seat, Activity activity) {
  Gang& gang = *seat.session->gang;
  if (gang.phase == Phase::kTurn) Spend(gang);
  const bool is_new = seat.activity != activity;
  if (is_new && gang.phase == Phase::kDraining) ChangedInDrain(seat, activity);
  SetActivity(seat, activity);
  if (is_new && !gang.tenant->best_effort()) {
    Device& device = *seat.device;
    if (activity == Activity::kIdle) {
      device.quiet_at = std::max(device.quiet_at, After(now_, seat.gap));
    }
    return Unsettle(device);
  }
  switch (gang.phase) {
    case Phase::kFree:
      return;
    case Phase::kResting:
      if (gang.has_work()) LineUp(gang);
      return;
    case Phase::kWaiting:
      if (!gang.has_work()) StepOut(gang);
      return;
    case Phase::kTurn:
    case Phase::kDraining:
      return Unsettle(*gang.turn.devices.front());
  }
}

TurnFacts Turns::FactsOf(const Gang& gang) const {
  TurnFacts facts;
  if (!gang.sessions.empty()) facts.session = gang.sessions.front()->id;
  facts.tenant = gang.tenant->number;
  facts.device = gang.home->id;
  facts.weight = gang.tenant->weight;
  facts.waited = now_ - gang.waiting_since;
  facts.charged = gang.turn.charged;
  return facts;
}

Time Turns::TurnLength(const Gang& gang) const {
  const Time usual = options_.turn_length;
  if (advice_ == nullptr || gang.home == nullptr) return usual;
  return std::clamp(advice_->TurnLength(now_, FactsOf(gang), usual), kShortestTurn, kLongestTurn);
}

void Turns::Begin(Gang& gang) {
  Turn turn;
  turn.devices = gang.waiting_at;
  turn.since = now_;
  turn.left = TurnLength(gang);
  turn.patience = options_.max_wait;
  StepOut(gang);
  const bool wide = turn.devices.size() > 1;
  for (Device* device : turn.devices) {
    device->holder = &gang;
    device->last_was_wide = wide;
  }
  if (wide) {
    ServeWide(*gang.tenant, gang.ticket);
  } else {
    QueueOf(*gang.home).Serve(*gang.tenant);
  }
  gang.turn = std::move(turn);
  gang.phase = Phase::kTurn;
  ++counters_.turns;
  Step(gang);
}

Ticket Turns::NextTicket(const Gang& gang) const {
  return {std::max(wide_clock_, gang.tenant->wide_time), arrivals_ + 1};
}

void Turns::ServeWide(Tenant& tenant, const Ticket& ticket) {
  wide_clock_ = std::max(wide_clock_, ticket.first);
  tenant.wide_time = std::max(tenant.wide_time, ticket.first) + 1.0 / tenant.weight;
}

void Turns::TakeOptions(Gang& gang) {
  Turn& turn = gang.turn;
  if (gang.phase == Phase::kTurn) {
    Spend(gang);
    turn.left = std::min(turn.left, options_.turn_length);
    turn.patience = std::min(turn.patience, options_.max_wait);
  } else if (gang.phase == Phase::kDraining) {
    const Time drain = options_.turn_length * options_.drain_lengths;
    turn.drain_by = std::min(turn.drain_by, After(now_, drain));
    Unsettle(*turn.devices.front());
  }
}

// Decides where the turn stands: over, held by latency-critical work, or open; and when to look
// again.
void Turns::Step(Gang& gang) {
  Turn& turn = gang.turn;
  if (gang.phase == Phase::kDraining) {
    if (gang.running > 0 && now_ < turn.drain_by) return Complete(gang);
    counters_.overruns += gang.running > 0;
    return Finish(gang);
  }
  Spend(gang);
  bool contended = false;
  Time hold_until{0};
  for (const Device* device : turn.devices) {
    contended |= device->contended();
    hold_until = std::max(hold_until, device->regime.hold_until);
  }
  const bool held = hold_until > now_;
  const bool wanted = contended || held;
  if (wanted && LingersUntil(gang) <= now_) {
    turn.gave_up = true;
    return Drain(gang);
  }
  if (turn.left <= Time{0}) {
    const bool by_score = advice_ != nullptr && advice_->scores();
    if (contended && (by_score || !IsNext(gang, Time{0}))) return Drain(gang);
    turn.left = TurnLength(gang);  // nobody else waits, or nobody is before it: another turn
    turn.patience = options_.max_wait;
    if (gang.home != nullptr) {
      QueueOf(*gang.home).Serve(*gang.tenant);
    } else {
      ServeWide(*gang.tenant, NextTicket(gang));
    }
    // Its next turn may be further off now, and no longer be waited for in this gap.
    if (wanted && LingersUntil(gang) <= now_) {
      turn.gave_up = true;
      return Drain(gang);
    }
  }

  const bool forced = held && turn.patience <= Time{0};
  counters_.forced += forced && !turn.open;
  SetGate(gang, forced || !held);
  Time wake = wanted ? LingersUntil(gang) : kForever;
  if (turn.open && wanted) wake = std::min(wake, After(now_, turn.left));
  if (!turn.open && gang.has_work()) {
    wake = std::min({wake, hold_until, After(now_, turn.patience)});
  }
  WakeAt(gang, wake);
}

void Turns::Spend(Gang& gang) const {
  Turn& turn = gang.turn;
  const Time passed = now_ - turn.since;
  turn.since = now_;
  if (turn.open) turn.left -= passed;
  if (!turn.open && gang.has_work() && turn.patience != kForever) turn.patience -= passed;
}

// When the turn is over because the gang makes nothing of it; kForever while it does.
Time Turns::LingersUntil(Gang& gang) {
  Turn& turn = gang.turn;
  const bool idle = turn.open ? gang.running == 0 : !gang.has_work();
  if (idle) {
    turn.idle_since = std::min(turn.idle_since, now_);
    const Time most = std::min(options_.linger + gang.idle_credit, options_.turn_length);
    const bool waited_for = most > options_.linger && IsNext(gang, options_.linger);
    return After(turn.idle_since, waited_for ? most : options_.linger);
  }
  const Time since = std::exchange(turn.idle_since, kForever);
  if (since != kForever && now_ - since > options_.linger) {
    gang.idle_credit -= std::min(gang.idle_credit, now_ - since - options_.linger);
  }
  return kForever;
}

void Turns::SetGate(Gang& gang, bool open) {
  if (gang.turn.open == open) return;
  gang.turn.open = open;
  if (open) gang.turn.opened_at = now_;
  changes_.Mark(gang);
}

void Turns::Drain(Gang& gang) {
  SetGate(gang, false);
  gang.phase = Phase::kDraining;
  if (gang.turn.gave_up) {
    const Time kept = now_ - gang.turn.idle_since;
    gang.idle_credit -= std::clamp(kept - options_.linger, Time{0}, gang.idle_credit);
  }
  // Something may have begun since the last report: a worker begins what is queued as soon as the
  // kernel before it ends. Whoever closes the gate reports what runs. On one device a gang is
  // believed that has begun nothing while its turn lingered: mostly it waits for its client.
  const bool believed = gang.turn.gave_up && gang.turn.devices.size() == 1;
  ForEachSeat(gang, [&](Seat& seat) {
    const bool opened = !believed && seat.told && seat.told->open;
    if (opened && seat.activity == Activity::kQueued) SetActivity(seat, Activity::kRunning);
    seat.unfinished = seat.activity == Activity::kRunning;
    seat.let_go = false;
  });
  gang.turn.drain_by = After(now_, options_.turn_length * options_.drain_lengths);
  gang.turn.closed_at = gang.turn.changed_at = now_;
  gang.turn.again = false;
  Unsettle(*gang.turn.devices.front());
}

// Before its activity is replaced. What is reported to run soon after the gate closed ran then.
void Turns::ChangedInDrain(Seat& seat, Activity activity) {
  Turn& turn = seat.session->gang->turn;
  turn.changed_at = now_;
  if (seat.activity == Activity::kRunning) {
    seat.unfinished = seat.let_go = false;
  } else if (activity == Activity::kRunning && !seat.let_go) {
    seat.unfinished = now_ - turn.closed_at < options_.complete_after;
  }
}

// See Gang in state.h.
void Turns::Complete(Gang& gang) {
  Turn& turn = gang.turn;
  const bool wide = turn.devices.size() > 1 && options_.complete_after != kForever;
  auto look = [&] {
    if (gang.has_unfinished()) return After(turn.changed_at, options_.complete_after);
    return turn.again ? kForever : After(turn.changed_at, options_.turn_length);
  };
  if (wide && look() <= now_) LetGo(gang);
  const bool before = turn.completes;
  turn.completes &= gang.has_unfinished();
  if (before) changes_.Mark(gang);
  WakeAt(gang, wide ? std::min(turn.drain_by, look()) : turn.drain_by);
}

void Turns::LetGo(Gang& gang) {
  Turn& turn = gang.turn;
  const bool takes_over = !gang.has_unfinished();
  turn.again |= takes_over;
  ForEachSeat(gang, [&](Seat& seat) {
    const bool runs = seat.activity == Activity::kRunning;
    if (runs && takes_over) {
      seat.unfinished = true;
      seat.let_go = false;
    } else if (!runs) {
      seat.let_go = true;
      ++seat.calls;
    }
  });
  turn.changed_at = now_;
  turn.completes = true;
}

void Turns::Finish(Gang& gang) {
  if (std::exchange(gang.turn.completes, false)) changes_.Mark(gang);
  gang.phase = Phase::kResting;
  // First, so that the order knows that it still wants the device.
  if (gang.has_work()) LineUp(gang);
  ReleaseDevices(gang);
}

void Turns::ReleaseDevices(Gang& gang) {
  Turn& turn = gang.turn;
  if (turn.devices.empty()) return;
  if (advice_ != nullptr && gang.home != nullptr) advice_->OnTurnEnded(now_, FactsOf(gang));
  if (gang.home != nullptr) {
    FairQueue& queue = QueueOf(*gang.home);
    const bool wasted = turn.gave_up && gang.has_work() && turn.charged < options_.least_charge;
    if (wasted) queue.Charge(*gang.tenant, options_.least_charge - turn.charged);
  }
  for (Device* device : turn.devices) {
    QueueOf(*device).Stop();
    device->holder = nullptr;
    Unsettle(*device);
  }
  turn.devices.clear();
  WakeAt(gang, kForever);
}

void Turns::Withdraw(Gang& gang) {
  if (gang.phase == Phase::kWaiting) StepOut(gang);
  SetGate(gang, false);
  ReleaseDevices(gang);
  gang.turn = {};
  gang.home = nullptr;
  gang.phase = Phase::kFree;
}

}  // namespace longwire::scheduler
