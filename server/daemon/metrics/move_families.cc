// Sessions that move: to another device or server, into a file and out of it.
#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {

// Of every kind and reason, so that the first one is seen as an increase.
void AddMoves(const Scrape& scrape, Families* families) {
  Family& done = families->Counter(
      "longwire_moves_total",
      "Sessions that have moved, by kind: to another device of this server, to another server, "
      "into "
      "a file (checkpoint), out of one (restore), to another device for a large session "
      "(rebalance).");
  Family& refused = families->Counter(
      "longwire_moves_refused_total",
      "Moves that ended before anything had stopped, by kind and reason: the session cannot move; "
      "there is no place for it, or the place's server refuses; it was never between calls "
      "(busy).");
  Family& back = families->Counter(
      "longwire_moves_gone_back_total",
      "Moves in which the session stood still, and then went on where it was; of restores: stays "
      "suspended.");
  Family& lost = families->Counter("longwire_moves_lost_total",
                                   "Sessions that ended with an error between their workers.");
  Family& bytes = families->Counter("longwire_moved_bytes_total",
                                    "Device memory of the sessions that have moved.");
  Family& calls = families->Counter(
      "longwire_moved_calls_total",
      "Calls of the sessions that have moved to another device or server which ran again in the "
      "new "
      "worker, by kind and when: while the program ran (before), while it stood still (still).");
  Family& pauses = families->Histogram(
      "longwire_move_pause_seconds",
      "How long the sessions that have moved stood still for it; of checkpoint and restore, for "
      "each of both by itself.");
  for (size_t i = 0; i < scrape.moves.size(); ++i) {
    const MoveFigures::OfKind& of = scrape.moves[i];
    const Labels kind = {{"kind", kMoveKinds[i]}};
    done.Add(kind, of.done);
    back.Add(kind, of.gone_back);
    lost.Add(kind, of.lost);
    bytes.Add(kind, of.bytes);
    calls.Add({{"kind", kMoveKinds[i]}, {"when", "before"}}, of.calls.before);
    calls.Add({{"kind", kMoveKinds[i]}, {"when", "still"}}, of.calls.still);
    pauses.AddHistogram(kind, HistogramOf(of.pauses));
    for (size_t why = 0; why < of.refused.size(); ++why) {
      refused.Add({{"kind", kMoveKinds[i]}, {"reason", kMoveRefusals[why]}}, of.refused[why]);
    }
  }
}

}  // namespace longwire::daemon
