#include "scheduler/changes.h"

#include <algorithm>
#include <tuple>

#include "scheduler/device_state.h"

namespace longwire::scheduler {

namespace {

// A seat on a device that another gang may have now waits for the next turn.
bool Completes(const Seat& seat) {
  const Gang& gang = *seat.session->gang;
  const bool held = seat.device->holder == &gang || !seat.device->regime.turns;
  return gang.turn.completes && held && seat.let_go;
}

Decision Decide(const Seat& seat) {
  const ScheduledSession& session = *seat.session;
  Decision decision;
  decision.session = session.id;
  decision.device = seat.device->id;
  decision.open = true;
  if (!session.tenant->best_effort()) return decision;
  decision.open = session.gang->open();
  decision.budget = seat.device->regime.budget;
  decision.copy_slice = seat.device->regime.copy_slice;
  if (Completes(seat)) decision.calls = seat.calls;
  return decision;
}

bool StandsBefore(const Decision& one, const Decision& other) {
  return std::tie(one.open, one.session, one.device) <
         std::tie(other.open, other.session, other.device);
}

}  // namespace

void Changes::Mark(Seat& seat) {
  if (seat.marked) return;
  seat.marked = true;
  marked_.push_back(&seat);
}

void Changes::Mark(Gang& gang) {
  for (ScheduledSession* session : gang.sessions) {
    for (Seat& seat : session->seats) Mark(seat);
  }
}

void Changes::Forget(Seat& seat) { std::erase(marked_, &seat); }

std::vector<Decision> Changes::Take() {
  std::vector<Decision> decisions;
  for (Seat* seat : marked_) {
    seat->marked = false;
    const Decision decision = Decide(*seat);
    if (seat->told == decision) continue;
    // Queued work runs as soon as the worker receives this. Assuming so now means that the end of a
    // turn always waits until the worker reports that its work has drained.
    const bool opens = decision.open && !(seat->told && seat->told->open);
    if (decision.calls != 0 || (opens && seat->activity == Activity::kQueued)) {
      SetActivity(*seat, Activity::kRunning);
      seat->session->gang->turn.idle_since = kForever;
    }
    seat->told = decision;
    decisions.push_back(decision);
  }
  marked_.clear();
  std::sort(decisions.begin(), decisions.end(), StandsBefore);
  return decisions;
}

}  // namespace longwire::scheduler
