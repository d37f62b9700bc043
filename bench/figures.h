// Small tools of the benchmark programs: timing, medians, one line per figure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace longwire::bench {

using Clock = std::chrono::steady_clock;

inline double Microseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The median time of one call of `work` in microseconds, after two that do not count.
template <class Work>
double MedianTime(int repetitions, Work work) {
  for (int i = 0; i < 2; ++i) work();
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    auto start = Clock::now();
    work();
    times.push_back(Microseconds(start, Clock::now()));
  }
  return Median(times);
}

// One figure, in a form that the runner reads: name, value, unit.
inline void Print(const char* name, double value, const char* unit) {
  std::printf("%-28s %14.3f %s\n", name, value, unit);
  std::fflush(stdout);
}

}  // namespace longwire::bench
