#include "server/daemon/moving/move_figures.h"

namespace longwire::daemon {

void MoveFigures::Done(MoveKind kind, std::chrono::nanoseconds pause, uint64_t bytes,
                       CallsAgain calls) {
  Of(kind).done.fetch_add(1);
  Of(kind).bytes.fetch_add(bytes);
  Of(kind).calls_before.fetch_add(calls.before);
  Of(kind).calls_still.fetch_add(calls.still);
  Of(kind).pauses.Add(pause);
}

void MoveFigures::Refused(MoveKind kind, MoveRefusal why) {
  Of(kind).refused[static_cast<size_t>(why)].fetch_add(1);
}

void MoveFigures::GoneBack(MoveKind kind) { Of(kind).gone_back.fetch_add(1); }

void MoveFigures::Lost(MoveKind kind) { Of(kind).lost.fetch_add(1); }

MoveFigures::Figures MoveFigures::Get() const {
  Figures figures;
  for (size_t kind = 0; kind < figures.size(); ++kind) {
    const Counters& counters = counters_[kind];
    OfKind& of = figures[kind];
    of.done = counters.done.load();
    of.gone_back = counters.gone_back.load();
    of.lost = counters.lost.load();
    of.bytes = counters.bytes.load();
    of.calls = {counters.calls_before.load(), counters.calls_still.load()};
    for (size_t i = 0; i < of.refused.size(); ++i) of.refused[i] = counters.refused[i].load();
    of.pauses = counters.pauses.Get();
  }
  return figures;
}

CountedMove::~CountedMove() {
  switch (at_) {
    case At::kNothing:
      break;
    case At::kSession:
      figures_.Refused(kind_, MoveRefusal::kSession);
      break;
    case At::kPlace:
      figures_.Refused(kind_, MoveRefusal::kPlace);
      break;
    case At::kHold:
      figures_.Refused(kind_, MoveRefusal::kBusy);
      break;
    case At::kStandsStill:
      figures_.GoneBack(kind_);
      break;
    case At::kSwitch:
      figures_.Lost(kind_);
      break;
  }
}

void CountedMove::Done(std::chrono::nanoseconds pause, uint64_t bytes, CallsAgain calls) {
  at_ = At::kNothing;
  figures_.Done(kind_, pause, bytes, calls);
}

}  // namespace longwire::daemon
