#include "server/statistics/figures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace longwire::statistics {
namespace {

constexpr uint32_t kWarp = 32;  // threads
// The register file is given to warps in pieces, on all devices since Volta.
constexpr uint32_t kRegisterPiece = 256;
constexpr uint32_t kRegisterLimit = 255;
constexpr uint32_t kLeastRegisters = 16;
constexpr uint32_t kSharedOfSystem = 1024;  // bytes of each block, since Ampere
// Beyond what any worker counts; sums stay far from their end.
constexpr uint64_t kLargest = uint64_t{1} << 56;

uint64_t Bounded(const std::atomic<uint64_t>& value) {
  return std::min(value.load(std::memory_order_relaxed), kLargest);
}

template <size_t kSize>
std::string TextOf(const char (&text)[kSize]) {
  char copy[kSize];
  std::memcpy(copy, text, kSize);
  return {copy, strnlen(copy, kSize - 1)};
}

uint32_t ThreadsOf(const KernelShape& shape) {
  const uint64_t threads = uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
  return static_cast<uint32_t>(std::min<uint64_t>(threads, 1u << 16));
}

uint32_t WarpsOf(const KernelShape& shape) { return (ThreadsOf(shape) + kWarp - 1) / kWarp; }

// Blocks that the registers allow, with this number of a thread.
uint32_t BlocksByRegisters(const KernelShape& shape, uint32_t registers) {
  const uint32_t of_warp =
      (registers * kWarp + kRegisterPiece - 1) / kRegisterPiece * kRegisterPiece;
  if (of_warp == 0) return shape.blocks_limit;
  return shape.registers_limit / of_warp / std::max(WarpsOf(shape), 1u);
}

void ReadSlot(KernelSlot& slot, Figures* figures) {
  KernelFigures one;
  one.shape = slot.shape;
  KernelKey key{TextOf(slot.module),
                TextOf(slot.name),
                {one.shape.block[0], one.shape.block[1], one.shape.block[2]},
                one.shape.dynamic_shared};
  one.launches = Bounded(slot.launches);
  one.blocks = Bounded(slot.blocks);
  one.timed = Bounded(slot.timed);
  one.nanoseconds = Bounded(slot.nanoseconds);
  one.queued = Bounded(slot.queued);
  one.queueing = Bounded(slot.queueing);
  one.begun = Bounded(slot.begun);
  one.beginning = Bounded(slot.beginning);
  for (uint32_t i = 0; i < kTimeBuckets; ++i) {
    one.times[i] = slot.times[i].load(std::memory_order_relaxed);
  }
  figures->kernels[key].Add(one);
}

}  // namespace

void KernelFigures::Add(const KernelFigures& other) {
  shape = other.shape;
  launches += other.launches;
  blocks += other.blocks;
  timed += other.timed;
  nanoseconds += other.nanoseconds;
  queued += other.queued;
  queueing += other.queueing;
  begun += other.begun;
  beginning += other.beginning;
  for (size_t i = 0; i < times.size(); ++i) times[i] += other.times[i];
}

double KernelFigures::GpuNanoseconds() const {
  if (timed == 0) return 0;
  return static_cast<double>(nanoseconds) / static_cast<double>(timed) *
         static_cast<double>(launches);
}

void Figures::Add(const Figures& other) {
  for (const auto& [key, one] : other.kernels) kernels[key].Add(one);
  others += other.others;
  rest.Add(other.rest);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
}

void Figures::Limit(size_t most) {
  if (kernels.size() <= most) return;
  std::vector<std::pair<double, KernelKey>> order;
  for (const auto& [key, one] : kernels) order.emplace_back(one.GpuNanoseconds(), key);
  std::ranges::sort(order, std::greater{});
  for (size_t i = most; i < order.size(); ++i) {
    rest.Add(kernels[order[i].second]);
    kernels.erase(order[i].second);
    ++others;
  }
}

Figures Read(Page& page) {
  Figures figures;
  for (uint32_t i = 0; i < kKernels; ++i) {
    KernelSlot& slot = page.kernel(i);
    if (slot.ready.load(std::memory_order_acquire) != 0) ReadSlot(slot, &figures);
  }
  for (size_t i = 0; i < figures.counts.size(); ++i) {
    figures.counts[i] = Bounded(page.count(static_cast<Count>(i)));
  }
  figures.rest.launches = figures.count(Count::kOtherLaunches);
  return figures;
}

double Median(const Times& times) {
  const uint64_t all = std::accumulate(times.begin(), times.end(), uint64_t{0});
  if (all == 0) return 0;
  const double middle = static_cast<double>(all) / 2;
  double before = 0;
  for (uint32_t i = 0; i < kTimeBuckets; ++i) {
    const auto here = static_cast<double>(times[i]);
    if (here == 0 || before + here < middle) {
      before += here;
      continue;
    }
    const double begin = BucketBegin(i);
    return begin + (BucketBegin(i + 1) - begin) * (middle - before) / here;
  }
  return 0;
}

std::optional<Occupancy> OccupancyOf(const KernelShape& shape) {
  if (shape.active_blocks == 0 || shape.threads_limit == 0) return std::nullopt;
  Occupancy occupancy;
  const double threads = static_cast<double>(WarpsOf(shape)) * kWarp * shape.active_blocks;
  occupancy.share = std::min(1.0, threads / shape.threads_limit);
  const uint32_t by_threads = shape.threads_limit / std::max(WarpsOf(shape) * kWarp, 1u);
  const uint64_t shared = uint64_t{shape.static_shared} + shape.dynamic_shared;
  const uint64_t by_shared =
      shared == 0 ? shape.blocks_limit : shape.shared_limit / (shared + kSharedOfSystem);
  const uint32_t active = shape.active_blocks;
  if (by_threads <= active) {
    occupancy.limit = Limit::kThreads;
  } else if (shared != 0 && by_shared <= active) {
    occupancy.limit = Limit::kSharedMemory;
  } else if (shape.registers != 0 && BlocksByRegisters(shape, shape.registers) <= active) {
    occupancy.limit = Limit::kRegisters;
  } else if (shape.blocks_limit <= active) {
    occupancy.limit = Limit::kBlocks;
  }
  return occupancy;
}

const char* Name(Limit limit) {
  switch (limit) {
    case Limit::kThreads:
      return "threads";
    case Limit::kRegisters:
      return "registers";
    case Limit::kSharedMemory:
      return "shared memory";
    case Limit::kBlocks:
      return "blocks";
    default:
      return "nothing known";
  }
}

uint32_t RegistersForOneMore(const KernelShape& shape) {
  uint32_t registers = std::min(shape.registers, kRegisterLimit);
  while (registers > kLeastRegisters &&
         BlocksByRegisters(shape, registers) <= shape.active_blocks) {
    --registers;
  }
  return BlocksByRegisters(shape, registers) > shape.active_blocks ? registers : 0;
}

}  // namespace longwire::statistics
