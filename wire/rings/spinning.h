// How long a waiting thread spins before it sleeps. A hop to a spinning reader costs 0.5 µs, to a
// sleeping one 9 µs, so spinning through a short wait is worth it. A program's waits resemble its
// last ones: a thread spins for twice the longest of them, at most 1 ms, or 0.3 ms where there are
// few cores (docs/decisions/0028). An idle thread sleeps. In a longer wait that takes as long as
// the last two, it sleeps until shortly before the expected end and then spins (0033).
#pragma once

#include <chrono>
#include <cstdint>

namespace longwire::wire {

class SpinPrediction {
 public:
  // `cores` that this process may use; see AllowedCores.
  explicit SpinPrediction(int cores);

  std::chrono::nanoseconds Spin() const { return spin_; }
  // The next part of a wait that has lasted `so_far`: spin for at most `spin`, then sleep for at
  // most `sleep`.
  struct Part {
    std::chrono::nanoseconds spin;
    std::chrono::nanoseconds sleep;
  };
  Part Next(std::chrono::nanoseconds so_far) const;
  // Reports how long a wait of the same kind took, including its sleep.
  void Waited(std::chrono::nanoseconds took);

 private:
  const bool predicts_;      // off with LONGWIRE_DISABLE=predicted-spins
  const bool spins_at_end_;  // of long waits
  const std::chrono::nanoseconds longest_spin_;
  std::chrono::nanoseconds longest_{0};  // longest recent wait of at most longest_spin_
  int pauses_ = 0;                       // longer waits in a row
  std::chrono::nanoseconds pause_{0};    // the last longer wait
  std::chrono::nanoseconds usual_{0};    // length of the last two longer waits; 0: they differ
  std::chrono::nanoseconds spin_;        // 0 with one core: spinning would only delay the reply
};

// The cores that the calling thread may run on.
int AllowedCores();

}  // namespace longwire::wire
