// Reproducible random numbers: the same seed gives the same ones everywhere (SplitMix64), which the
// standard library's distributions do not promise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "scheduler/types.h"

namespace longwire::scheduler::simulate {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 to 1, without 1.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // 0 to `bound`, without it; `bound` must not be 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // Low to high, both possible.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  // Exponentially distributed with this mean, cut at ten times it.
  Time Exponential(Time mean) {
    const double times = std::min(-std::log(1 - Unit()), 10.0);
    return Time(static_cast<int64_t>(times * static_cast<double>(mean.count())));
  }

 private:
  uint64_t state_;
};

}  // namespace longwire::scheduler::simulate
