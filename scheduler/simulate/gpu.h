// One device as the hardware shares it: a context per session, one kernel at a time each. Contexts
// of one class have equal parts of the device; beside a latency-critical one all best-effort ones
// together have only what their short time slices give them.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "scheduler/types.h"

namespace longwire::scheduler::simulate {

class Gpu {
 public:
  // Begins a kernel of the session `who`, which runs none.
  void Start(Time now, uint32_t who, bool best_effort, Time length);
  // When the next kernel ends, if none begins before; kForever if none runs.
  Time next_end() const { return next_end_; }
  // Takes out the kernel that ends then. Returns whose it was.
  uint32_t End(Time now);

 private:
  // Kernels of one class, ordered by the amount of service (nanoseconds of a whole device for each)
  // at which they end.
  struct Class {
    double service = 0;
    std::set<std::pair<double, uint32_t>> kernels;
  };

  void Serve(Time now);
  void Predict();
  // Service of one kernel of the class in a nanosecond.
  double Rate(bool best_effort) const;

  Class classes_[2];  // latency critical, best effort
  Time served_until_{0};
  Time next_end_ = kForever;
  bool next_is_best_effort_ = false;
};

}  // namespace longwire::scheduler::simulate
