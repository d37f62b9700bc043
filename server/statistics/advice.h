// What could be better about a program, by what its kernels were seen to do. Each piece of advice
// has the numbers that it was derived from, and says what would change.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/statistics/figures.h"
#include "server/statistics/history.h"

namespace longwire::statistics {

// From here on something is advised. Nothing is said of what cannot matter: the figures are of
// whole programs.
inline constexpr double kLowOccupancy = 0.5;
inline constexpr double kShareOfTime = 0.1;       // of the program's time on the device
inline constexpr double kTinyNanoseconds = 30e3;  // a launch of a shorter kernel costs like it
inline constexpr uint64_t kManyLaunches = 2000;
inline constexpr uint64_t kManyCopies = 16;
inline constexpr uint64_t kManyBytes = uint64_t{16} << 20;
inline constexpr uint64_t kManyTurns = 32;
inline constexpr double kShareOfTurns = 0.05;  // of the launches of contexts with several streams
inline constexpr uint64_t kManyWaits = 100;
inline constexpr double kShareOfWaits = 0.5;  // of all launches

struct ProgramSeen {
  Figures figures;
  double seconds = 0;  // that its sessions ran, together
  std::map<KernelKey, Drift> drifts;
};

// What a rule of the operator can do about it; none if it names no module.
struct AdvisedRule {
  std::string module;
  std::string kernel;          // empty: all of the module
  uint32_t shared_memory = 0;  // percent
  uint32_t registers = 0;
  bool empty() const { return shared_memory == 0 && registers == 0; }
};

struct Advice {
  std::string kind;     // occupancy, launches, copies, streams, synchronizations or drift
  std::string subject;  // a kernel, or "program"
  std::string seen;     // a sentence with the numbers
  std::string change;   // a sentence: what would change
  std::vector<std::pair<std::string, double>> numbers;
  AdvisedRule rule;
};

std::vector<Advice> Advise(const ProgramSeen& program);

// "4.2 us", "1.5 ms"
std::string TimeText(double nanoseconds);

}  // namespace longwire::statistics
