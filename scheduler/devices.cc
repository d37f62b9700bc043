// Who waits at a device and whose turn is next there. turns.cc has what happens then.
#include <algorithm>

#include "scheduler/turns.h"

namespace longwire::scheduler {

namespace {

// A gang that a program passes over comes first after as many turns, or options.max_wait if that
// is longer, but no longer than this.
constexpr int64_t kTurnsPassedOver = 10;
constexpr Time kLongestPassedOver = std::chrono::seconds(1);

// The gang's devices that have turns; none if the gang does not take part.
std::vector<Device*> DevicesWithTurns(const Gang& gang) {
  std::vector<Device*> devices;
  if (!gang.tenant->best_effort()) return devices;
  for (ScheduledSession* session : gang.sessions) {
    for (Seat& seat : session->seats) {
      const bool listed = std::find(devices.begin(), devices.end(), seat.device) != devices.end();
      if (seat.device->regime.turns && !listed) devices.push_back(seat.device);
    }
  }
  return devices;
}

bool HoldsAll(const Turn& turn, const std::vector<Device*>& devices) {
  return std::all_of(devices.begin(), devices.end(), [&](const Device* device) {
    return std::find(turn.devices.begin(), turn.devices.end(), device) != turn.devices.end();
  });
}

}  // namespace

void Turns::Unsettle(Device& device) {
  if (device.unsettled) return;
  device.unsettled = true;
  unsettled_.push_back(&device);
}

void Turns::Settle() {
  while (!unsettled_.empty()) {
    Device& device = *unsettled_.front();
    unsettled_.pop_front();
    device.unsettled = false;
    AskPolicy(device);
    if (device.holder != nullptr) {
      Step(*device.holder);
    } else {
      Offer(device);
    }
  }
}

void Turns::AskPolicy(Device& device) {
  const Regime before = device.regime;
  DeviceSnapshot snapshot = device.Snapshot();
  snapshot.now = now_;
  device.regime = policy_->Decide(snapshot);
  Regime but_for_hold = device.regime;
  but_for_hold.hold_until = before.hold_until;  // concerns the turn alone, which is looked at next
  if (but_for_hold == before) return;
  for (auto& [session, seat] : device.seats) Reconsider(*seat->session->gang);
}

void Turns::Reconsider(Gang& gang) {
  changes_.Mark(gang);
  const std::vector<Device*> devices = DevicesWithTurns(gang);
  if (devices.empty()) return Withdraw(gang);
  switch (gang.phase) {
    case Phase::kWaiting:
      if (gang.waiting_at == devices) return;
      StepOut(gang);
      break;
    case Phase::kTurn:
      // Its turn does not cover all it needs now: it gives the turn up and lines up again.
      if (!HoldsAll(gang.turn, devices)) Drain(gang);
      return;
    case Phase::kDraining:
      return;
    case Phase::kFree:
      gang.charged_from = now_;  // nobody took turns
      break;
    case Phase::kResting:
      break;
  }
  gang.phase = Phase::kResting;
  if (gang.has_work()) LineUp(gang);
}

void Turns::LineUp(Gang& gang) {
  gang.phase = Phase::kWaiting;
  gang.arrival = ++arrivals_;
  gang.waiting_since = now_;
  gang.waiting_at = DevicesWithTurns(gang);
  const bool wide = gang.waiting_at.size() > 1;
  gang.home = wide ? nullptr : gang.waiting_at.front();
  gang.ticket = {std::max(wide_clock_, gang.tenant->wide_time), gang.arrival};
  for (Device* device : gang.waiting_at) {
    if (wide) {
      device->wide.emplace(gang.ticket, &gang);
    } else {
      QueueOf(*device).Push(gang);
    }
    Unsettle(*device);
  }
}

void Turns::StepOut(Gang& gang) {
  const bool wide = gang.waiting_at.size() > 1;
  for (Device* device : gang.waiting_at) {
    if (wide) {
      device->wide.erase(gang.ticket);
    } else {
      QueueOf(*device).Remove(gang);
    }
    Unsettle(*device);  // it may have been kept for this gang
  }
  gang.waiting_at.clear();
  gang.phase = Phase::kResting;
}

Gang* Turns::Next(const Device& device) const {
  const bool own_first = device.last_was_wide && !device.queue.empty();
  if (device.wide.empty() || own_first) return NextOfQueue(device);
  return device.wide.begin()->second;
}

// By the program's scores, but nobody is passed over for ever: who has waited too long comes first.
Gang* Turns::NextOfQueue(const Device& device) const {
  Gang* best = device.queue.Front();
  if (best == nullptr || advice_ == nullptr || !advice_->scores()) return best;
  const Gang* oldest = nullptr;
  std::vector<Gang*> waiting = device.queue.Waiting();
  for (Gang* gang : waiting) {
    if (oldest == nullptr || gang->arrival < oldest->arrival) oldest = gang;
  }
  const Time longest = std::max(std::min(options_.max_wait, kLongestPassedOver),
                                options_.turn_length * kTurnsPassedOver);
  uint64_t best_score = advice_->Score(now_, FactsOf(*best));
  for (Gang* gang : waiting) {
    if (gang == oldest && now_ - gang->waiting_since > longest) return gang;
    if (gang == best) continue;
    const uint64_t score = advice_->Score(now_, FactsOf(*gang));
    if (score <= best_score) continue;
    best = gang;
    best_score = score;
  }
  return best;
}

void Turns::Offer(Device& device) {
  QueueOf(device);  // in its order of now
  Gang* gang = Next(device);
  if (gang == nullptr) return;
  for (const Device* at : gang->waiting_at) {
    if (at->holder != nullptr) return;
    if (at != &device && Next(*at) != gang) return;  // asked once: a program may remember
  }
  Begin(*gang);
}

void Turns::Merge(Gang& into, Gang& from) {
  for (Gang* gang : {&into, &from}) {
    changes_.Mark(*gang);
    if (gang->phase == Phase::kWaiting) StepOut(*gang);
    WakeAt(*gang, kForever);
    // The turn that begins or drains is that of both.
    gang->turn.completes = false;
    ForEachSeat(*gang, [](Seat& seat) {
      seat.unfinished = seat.activity == Activity::kRunning;
      seat.let_go = false;
    });
  }
  if (into.phase == Phase::kFree) into.phase = from.phase;
  auto& devices = into.turn.devices;
  devices.insert(devices.end(), from.turn.devices.begin(), from.turn.devices.end());
  for (Device* device : devices) device->holder = &into;
  if (!devices.empty()) Drain(into);
}

}  // namespace longwire::scheduler
