// The scheduler's lengths of time, with the reason for each.
#pragma once

#include "scheduler/types.h"

namespace longwire::scheduler {

struct Options {
  // How long a gang's gate stays open when others wait. On an H200 a change of context costs about
  // 160 us and what is in flight takes up to 250 us to drain: 4 % of 10 ms, 20 % of 2 ms. And
  // kernels of 21 ms, as the measured best-effort load has, still drain within four lengths.
  Time turn_length = std::chrono::milliseconds(10);
  // If a turn's work has not drained after this number of turn lengths, the next gate opens anyway.
  // longwired sets more (server/daemon/sessions/terms.cc).
  uint32_t drain_lengths = 4;
  // How long latency-critical work may keep a turn's gate closed, all interruptions of that turn
  // together. So best-effort gates are open a part turn_length / (turn_length + max_wait) of the
  // time, 9 %, even beside a session that is never idle. kForever: no bound.
  Time max_wait = std::chrono::milliseconds(100);
  // A gang with nothing on its devices keeps its turn so long, in case it only waits for its own
  // result: about what the change to another would cost, so that neither guess is far off the best.
  Time linger = std::chrono::microseconds(200);
  // A wide gang's turn is over and some of its work still runs: after this time it is taken to wait
  // for calls on the gang's other devices, which then go on (see Gang in state.h). kForever: never.
  Time complete_after = std::chrono::microseconds(200);
  // A gang that is owed GPU time keeps the device through longer gaps: each up to a turn's length,
  // and in all up to this multiple of the time that it uses. So another tenant's kernels of 0.5 s
  // do not take the device each time that the gang waits for a result, and a gang that runs for 10
  // us every 5 ms does not keep the device from others.
  uint32_t idle_times = 8;
  // What a turn is charged at least whose gang has calls and gives none to the device: the change
  // of context it caused. Without it a gang that waits for its client would always come first.
  Time least_charge = std::chrono::microseconds(160);
  // A latency-critical session is busy until its longest recent gap between launches has passed
  // idle; longer gaps than this, and gaps not yet known, count as this.
  Time longest_gap = std::chrono::milliseconds(1);
  // Shares of GPU time are reported over this span.
  Time window = std::chrono::seconds(60);
};

}  // namespace longwire::scheduler
