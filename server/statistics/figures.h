// What is known of a kernel's launches, as it is summed up, and what follows from it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "server/statistics/page.h"

namespace longwire::statistics {

using Times = std::array<uint64_t, kTimeBuckets>;

struct KernelKey {
  std::string module;
  std::string name;
  std::array<uint32_t, 3> block{};
  uint32_t dynamic_shared = 0;
  auto operator<=>(const KernelKey&) const = default;
};

struct KernelFigures {
  KernelShape shape;
  uint64_t launches = 0;
  uint64_t blocks = 0;
  uint64_t timed = 0;
  uint64_t nanoseconds = 0;
  uint64_t queued = 0;
  uint64_t queueing = 0;
  uint64_t begun = 0;
  uint64_t beginning = 0;
  Times times{};

  void Add(const KernelFigures& other);
  // Of all launches together, from those that were timed.
  double GpuNanoseconds() const;
};

// Of one session, or of several of one program.
struct Figures {
  std::map<KernelKey, KernelFigures> kernels;
  uint64_t others = 0;  // kernels that were summed up and are not in `kernels`
  KernelFigures rest;   // these
  std::array<uint64_t, static_cast<size_t>(Count::kCount)> counts{};

  uint64_t count(Count of) const { return counts[static_cast<size_t>(of)]; }
  void Add(const Figures& other);
  // Keeps the `most` kernels with the most time, the others are summed up.
  void Limit(size_t most);
};

// A copy of what a worker wrote, whose values are within bounds.
Figures Read(Page& page);

// The median in nanoseconds; 0 of no times.
double Median(const Times& times);

// Which resource of a multiprocessor limits how many blocks run there at once.
enum class Limit { kThreads, kRegisters, kSharedMemory, kBlocks, kNone };
struct Occupancy {
  double share = 0;  // of the threads that a multiprocessor can hold
  Limit limit = Limit::kNone;
};
// None where the calculator said nothing.
std::optional<Occupancy> OccupancyOf(const KernelShape& shape);
const char* Name(Limit limit);
// The registers of a thread with which one block more runs at once; 0: none helps.
uint32_t RegistersForOneMore(const KernelShape& shape);

}  // namespace longwire::statistics
