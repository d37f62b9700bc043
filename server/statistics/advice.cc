#include "server/statistics/advice.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace longwire::statistics {
namespace {

__attribute__((format(printf, 1, 2))) std::string Text(const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  return text;
}

unsigned long long Long(uint64_t value) { return value; }

double TimeOfAll(const Figures& figures) {
  double sum = figures.rest.GpuNanoseconds();
  for (const auto& [key, one] : figures.kernels) sum += one.GpuNanoseconds();
  return sum;
}

std::string ChangeOfOccupancy(Limit limit, const KernelShape& shape, AdvisedRule* rule) {
  switch (limit) {
    case Limit::kSharedMemory:
      rule->shared_memory = 100;
      return "less shared memory of a block lets more blocks run at once; the rule "
             "'launch: {shared_memory: 100}' makes sure that a multiprocessor's memory is given to "
             "these blocks rather than to its cache";
    case Limit::kRegisters: {
      const uint32_t registers = RegistersForOneMore(shape);
      if (registers == 0) return "fewer threads of a block need fewer registers at once";
      if (shape.is_ptx != 0) rule->registers = registers;
      return Text(
          "with %u registers of a thread (__launch_bounds__, -maxrregcount%s) one block "
          "more runs at once; more of what a thread needs then lies in memory, so compare "
          "the times",
          registers, shape.is_ptx != 0 ? ", or the rule 'jit: {registers: N}'" : "");
    }
    case Limit::kBlocks:
      return "larger blocks: a multiprocessor cannot hold more of them, but more threads";
    case Limit::kThreads:
      return "another number of threads of a block: this one does not divide what a "
             "multiprocessor can hold";
    default:
      return "what limits it is not known from registers, shared memory, threads and blocks";
  }
}

void AdviseOccupancy(const KernelKey& key, const KernelFigures& one, double all,
                     std::vector<Advice>* list) {
  auto occupancy = OccupancyOf(one.shape);
  if (!occupancy || occupancy->share >= kLowOccupancy || one.timed == 0) return;
  if (all == 0 || one.GpuNanoseconds() < kShareOfTime * all) return;
  const KernelShape& shape = one.shape;
  const double blocks = static_cast<double>(one.blocks) / static_cast<double>(one.timed);
  const double room = static_cast<double>(shape.active_blocks) * shape.multiprocessors;
  // What has fewer blocks than can run at once gains nothing from room for more.
  if (blocks <= room) return;
  Advice advice;
  advice.kind = "occupancy";
  advice.subject = key.name;
  advice.seen = Text(
      "%.0f%% of a multiprocessor's threads can run at once: %u blocks of %ux%ux%u threads, "
      "limited "
      "by %s (%u registers of a thread, %u bytes of shared memory of a block); its launches have "
      "%.0f blocks, %.0f run at once; it takes %.0f%% of the program's time on the device",
      100 * occupancy->share, shape.active_blocks, shape.block[0], shape.block[1], shape.block[2],
      Name(occupancy->limit), shape.registers, shape.static_shared + shape.dynamic_shared, blocks,
      room, 100 * one.GpuNanoseconds() / all);
  advice.rule.module = key.module;
  advice.change = ChangeOfOccupancy(occupancy->limit, shape, &advice.rule);
  if (advice.rule.shared_memory != 0) advice.rule.kernel = key.name;
  advice.numbers = {{"occupancy", occupancy->share},
                    {"active_blocks", shape.active_blocks},
                    {"registers", shape.registers},
                    {"shared_bytes", shape.static_shared + shape.dynamic_shared},
                    {"blocks", blocks},
                    {"share_of_time", one.GpuNanoseconds() / all}};
  list->push_back(std::move(advice));
}

void AdviseLaunches(const ProgramSeen& program, std::vector<Advice>* list) {
  uint64_t tiny = 0, kernels = 0;
  double time = 0;
  for (const auto& [key, one] : program.figures.kernels) {
    if (one.timed == 0 || Median(one.times) >= kTinyNanoseconds) continue;
    tiny += one.launches;
    time += one.GpuNanoseconds();
    ++kernels;
  }
  const uint64_t graphs = program.figures.count(Count::kGraphLaunches);
  if (tiny < kManyLaunches) return;
  const double mean = time / static_cast<double>(tiny);
  Advice advice;
  advice.kind = "launches";
  advice.subject = "program";
  advice.seen = Text("%llu launches of %llu kernels that take %s on average, and %llu of graphs",
                     Long(tiny), Long(kernels), TimeText(mean).c_str(), Long(graphs));
  advice.change =
      "capture sequences that repeat as a graph (cudaStreamBeginCapture), or do more in one "
      "kernel: "
      "a graph is one call of the program and one of the driver for all its kernels";
  advice.numbers = {{"launches", static_cast<double>(tiny)},
                    {"mean_nanoseconds", mean},
                    {"graph_launches", static_cast<double>(graphs)},
                    {"launches_per_second",
                     program.seconds > 0 ? static_cast<double>(tiny) / program.seconds : 0}};
  list->push_back(std::move(advice));
}

void AdviseCopies(const ProgramSeen& program, std::vector<Advice>* list) {
  const Figures& figures = program.figures;
  const uint64_t copies = figures.count(Count::kCopiesUp) + figures.count(Count::kCopiesDown);
  const uint64_t up = figures.count(Count::kBytesUp), down = figures.count(Count::kBytesDown);
  if (copies < kManyCopies || up + down < kManyBytes) return;
  const double rate = program.seconds > 0 ? static_cast<double>(up + down) / program.seconds : 0;
  Advice advice;
  advice.kind = "copies";
  advice.subject = "program";
  advice.seen = Text(
      "%llu copies of at least 64 KiB from or to memory that is not pinned, %.1f MiB up and %.1f "
      "MiB "
      "down, %.1f MiB/s; pinned ones: %llu",
      Long(copies), static_cast<double>(up) / 0x1p20, static_cast<double>(down) / 0x1p20,
      rate / 0x1p20, Long(figures.count(Count::kPinnedCopies)));
  advice.change =
      "cudaMallocHost for these buffers: at the local socket pinned memory is shared with the "
      "worker, and the device copies from and to it without a copy in between";
  advice.numbers = {{"copies", static_cast<double>(copies)},
                    {"bytes_up", static_cast<double>(up)},
                    {"bytes_down", static_cast<double>(down)},
                    {"bytes_per_second", rate},
                    {"pinned_copies", static_cast<double>(figures.count(Count::kPinnedCopies))}};
  list->push_back(std::move(advice));
}

void AdviseStreams(const ProgramSeen& program, std::vector<Advice>* list) {
  const uint64_t turns = program.figures.count(Count::kLegacyTurns);
  const uint64_t launches = program.figures.count(Count::kStreamLaunches);
  const double share =
      launches == 0 ? 0 : static_cast<double>(turns) / static_cast<double>(launches);
  if (turns < kManyTurns || share < kShareOfTurns) return;
  Advice advice;
  advice.kind = "streams";
  advice.subject = "program";
  advice.seen = Text(
      "%llu times in %llu launches the program went from the default stream to another one or "
      "back: "
      "each of these waits for all that runs in the other",
      Long(turns), Long(launches));
  advice.change =
      "streams with cudaStreamNonBlocking, or nvcc --default-stream per-thread: then they run "
      "beside "
      "each other, and the program orders with events what has to be in order";
  advice.numbers = {{"turns", static_cast<double>(turns)},
                    {"launches", static_cast<double>(launches)},
                    {"share", share}};
  list->push_back(std::move(advice));
}

// Whether it waits or is slower than the device the server cannot see; a program that is slower
// than tiny kernels is no news.
void AdviseWaits(const ProgramSeen& program, std::vector<Advice>* list) {
  const Figures& figures = program.figures;
  const uint64_t late = figures.count(Count::kLateLaunches);
  uint64_t launches = figures.rest.launches;
  for (const auto& [key, one] : figures.kernels) launches += one.launches;
  const double share =
      launches == 0 ? 0 : static_cast<double>(late) / static_cast<double>(launches);
  const double mean = launches == 0 ? 0 : TimeOfAll(figures) / static_cast<double>(launches);
  if (late < kManyWaits || share < kShareOfWaits || mean < kTinyNanoseconds) return;
  Advice advice;
  advice.kind = "synchronizations";
  advice.subject = "program";
  advice.seen = Text(
      "%llu of %llu launches came when the launch before them had ended, and nothing was copied "
      "between the two: the program waits after launches, or takes longer than the device, which "
      "takes %s for one",
      Long(late), Long(launches), TimeText(mean).c_str());
  advice.change =
      "without cudaDeviceSynchronize or cudaStreamSynchronize between launches of a stream, which "
      "are in order anyway, the next one is on its way while the device works";
  advice.numbers = {{"late_launches", static_cast<double>(late)},
                    {"launches", static_cast<double>(launches)},
                    {"mean_nanoseconds", mean}};
  list->push_back(std::move(advice));
}

void AdviseDrift(const KernelKey& key, const Drift& drift, std::vector<Advice>* list) {
  if (!drift.is_anomaly()) return;
  Advice advice;
  advice.kind = "drift";
  advice.subject = key.name;
  advice.seen = Text("a launch takes %s today; the median of %u earlier days is %s (%.2f x)",
                     TimeText(drift.today).c_str(), drift.days, TimeText(drift.earlier).c_str(),
                     drift.ratio());
  advice.change = drift.ratio() > 1
                      ? "look for what is new: sizes, a driver, clocks of the device, who shares it"
                      : "it became faster; if it does less than before that may be a fault";
  advice.numbers = {{"today_nanoseconds", drift.today},
                    {"earlier_nanoseconds", drift.earlier},
                    {"ratio", drift.ratio()},
                    {"days", drift.days}};
  list->push_back(std::move(advice));
}

}  // namespace

std::string TimeText(double nanoseconds) {
  if (nanoseconds < 1e3) return Text("%.0f ns", nanoseconds);
  if (nanoseconds < 1e6) return Text("%.1f us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return Text("%.1f ms", nanoseconds / 1e6);
  return Text("%.2f s", nanoseconds / 1e9);
}

std::vector<Advice> Advise(const ProgramSeen& program) {
  std::vector<Advice> list;
  const double all = TimeOfAll(program.figures);
  for (const auto& [key, one] : program.figures.kernels) {
    AdviseOccupancy(key, one, all, &list);
  }
  AdviseLaunches(program, &list);
  AdviseCopies(program, &list);
  AdviseStreams(program, &list);
  AdviseWaits(program, &list);
  for (const auto& [key, drift] : program.drifts) AdviseDrift(key, drift, &list);
  return list;
}

}  // namespace longwire::statistics
