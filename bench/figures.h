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

// What `share` of the values do not exceed: 0.99 for the 99th percentile.
inline double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

template <class Work>
double TimeOf(Work& work) {
  auto start = Clock::now();
  work();
  return Microseconds(start, Clock::now());
}

// The median time of one call of `work` in microseconds, after two that do not count. Over a long
// wire fewer repetitions must do: what takes long once is measured once more.
template <class Work>
double MedianTime(int repetitions, Work work) {
  constexpr double kLong = 400e3, kMaxTotal = 400e3;  // of one call, of all together
  constexpr size_t kLeast = 3;
  if (TimeOf(work) > kLong) return TimeOf(work);
  work();
  std::vector<double> times;
  double sum = 0;
  for (int i = 0; i < repetitions && (sum < kMaxTotal || times.size() < kLeast); ++i) {
    times.push_back(TimeOf(work));
    sum += times.back();
  }
  return Median(times);
}

// One figure, in a form that the runner reads: name, value, unit.
inline void Print(const char* name, double value, const char* unit) {
  std::printf("%-28s %14.3f %s\n", name, value, unit);
  std::fflush(stdout);
}

}  // namespace longwire::bench
