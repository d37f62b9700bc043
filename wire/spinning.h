// How long a waiting thread looks before it sleeps. A hop to a reader that looks costs 0.5 µs, to
// one that sleeps 9 µs; so it is worth looking through a wait that will be short, and a program's
// waits are like its last ones: a thread looks for twice the longest of them, up to a millisecond,
// or 0.3 ms where there are few cores (docs/decisions/0028). A thread that is idle sleeps. Of waits
// that are longer, but as long as the last two, it sleeps through all but the end (0033).
#pragma once

#include <chrono>
#include <cstdint>

namespace longwire::wire {

class SpinPrediction {
 public:
  // `cores` that this process may use; see AllowedCores.
  explicit SpinPrediction(int cores);

  std::chrono::nanoseconds Spin() const { return spin_; }
  // How a wait goes on that has lasted `so_far`: looking first, then asleep for at most so long.
  struct Part {
    std::chrono::nanoseconds look;
    std::chrono::nanoseconds sleep;
  };
  Part Next(std::chrono::nanoseconds so_far) const;
  // A wait of the same kind took this long, asleep or not.
  void Waited(std::chrono::nanoseconds took);

 private:
  const bool predicts_;  // off with LONGWIRE_DISABLE=predicted-spins
  const bool looks_again_;
  const std::chrono::nanoseconds longest_look_;
  std::chrono::nanoseconds longest_{0};  // of the last waits that were no pauses
  int pauses_ = 0;                       // in a row
  std::chrono::nanoseconds pause_{0};    // the last of them
  std::chrono::nanoseconds usual_{0};    // what the last two took; 0: they differ
  std::chrono::nanoseconds spin_;        // 0 with one core: looking would only delay the answer
};

// The cores that the calling thread may run on.
int AllowedCores();

}  // namespace longwire::wire
