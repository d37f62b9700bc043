// What a launch costs the worker's log thread beside the driver's own part: 3,000 launches that
// stand in the log, with a driver that does nothing, and with one that keeps the processor busy for
// some microseconds and leaves nothing of the worker's code and data in the nearest caches, as
// NVIDIA's does; one by one, and as chains of 16 (docs/decisions/0035); and with
// kernel_statistics: sampled, each round right behind one without.
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "server/worker/testing/test_session.h"

namespace longwire::worker::testing {
namespace {

using bench::Clock;

constexpr int kLaunches = 3000;
constexpr int kRounds = 25;
constexpr uint64_t kStream = 7;

std::atomic<bool> held{false};
std::atomic<bool> done{false};
int missing = 0;             // launches of the round that are still to come
Clock::duration drivers{0};  // time of the driver's part in this round
bool busy = false;
bool chains = false;  // the driver makes graphs

// 32 KiB of data and as much code: each a piece of its own that nothing can be left out of.
constexpr size_t kLine = 64;
alignas(kLine) std::array<uint64_t, (32 << 10) / sizeof(uint64_t)> words;

template <size_t N>
__attribute__((noinline, aligned(kLine))) uint64_t Piece(uint64_t x) {
  x = (x ^ N) * (2 * N + 3) + (x >> (N % 31 + 1));
  x = (x ^ (N * 7)) * (2 * N + 5) + (x >> (N % 29 + 1));
  return x + N;
}

template <size_t... N>
constexpr auto Pieces(std::index_sequence<N...>) {
  return std::array{&Piece<N>...};
}
constexpr auto kPieces = Pieces(std::make_index_sequence<448>());

void DriversPart() {
  if (!busy) return;
  uint64_t x = words[0];
  for (auto piece : kPieces) x = piece(x);
  for (size_t i = 0; i < words.size(); i += kLine / sizeof(uint64_t)) words[i] += x;
}

void Take(int launches) {
  while (held.load(std::memory_order_relaxed)) {
  }
  auto begun = Clock::now();
  DriversPart();
  drivers += Clock::now() - begun;
  missing -= launches;
  if (missing == 0) {
    done = true;
    done.notify_one();
  }
}

CUresult Launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                CUstream, void**, void**) {
  Take(1);
  return CUDA_SUCCESS;
}

// A graph's executable is its number of nodes.
CUresult AddNode(CUgraphNode*, CUgraph graph, const CUgraphNode*, size_t,
                 const CUDA_KERNEL_NODE_PARAMS*) {
  ++*reinterpret_cast<int64_t*>(graph);
  return CUDA_SUCCESS;
}

CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  if (!chains) return CUDA_ERROR_NOT_SUPPORTED;
  *exec = reinterpret_cast<CUgraphExec>(*reinterpret_cast<int64_t*>(graph));
  return CUDA_SUCCESS;
}

CUresult LaunchGraph(CUgraphExec exec, CUstream) {
  Take(static_cast<int>(reinterpret_cast<int64_t>(exec)));
  return CUDA_SUCCESS;
}

void FillGraphs(DriverTable& table) {
  table.cuGraphCreate = [](CUgraph* graph, unsigned) {
    *graph = reinterpret_cast<CUgraph>(new int64_t(0));
    return CUDA_SUCCESS;
  };
  table.cuGraphDestroy = [](CUgraph graph) {
    delete reinterpret_cast<int64_t*>(graph);
    return CUDA_SUCCESS;
  };
  table.cuGraphExecDestroy = [](CUgraphExec) { return CUDA_SUCCESS; };
  table.cuGraphAddKernelNode_v2 = &AddNode;
  table.cuGraphInstantiateWithFlags = &Instantiate;
  table.cuGraphLaunch = &LaunchGraph;
}

CUresult WriteValue(CUstream, CUdeviceptr address, cuuint64_t value, unsigned) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(address), value, __ATOMIC_RELEASE);
  return CUDA_SUCCESS;
}

double Nanoseconds(Clock::duration of_all) {
  return std::chrono::duration<double, std::nano>(of_all).count() / kLaunches;
}

struct Times {
  std::vector<double> worker, driver;
};

void MeasureRounds(TestSession& session, int rounds, Times* times) {
  for (int round = 0; round < rounds; ++round) {
    held = true;
    drivers = {};
    done = false;
    missing = kLaunches;
    for (int i = 0; i < kLaunches; ++i) session.Launch(kStream, 1);
    auto begun = Clock::now();
    held = false;
    // Asleep: with two cores they are the log thread's and the completion thread's.
    while (!done.load()) done.wait(false);
    times->driver.push_back(Nanoseconds(drivers));
    times->worker.push_back(Nanoseconds(Clock::now() - begun) - times->driver.back());
  }
}

void Print(Times times, const std::string& name) {
  bench::Print((name + "_driver").c_str(), bench::Median(times.driver), "ns");
  bench::Print((name + "_worker").c_str(), bench::Median(times.worker), "ns");
}

void Measure(TestSession& session, const std::string& name) {
  Times times;
  MeasureRounds(session, kRounds, &times);
  Print(std::move(times), name);
}

// In turn: what else the machine does meets both. The first launches after a change, of which all
// are timed, belong to neither.
void MeasureCounted(TestSession& session, const std::string& name) {
  auto page = statistics::Page::Create();
  page->kernels_on() = 1;
  Times plain, counted, first;
  for (int round = 0; round < kRounds; ++round) {
    session.session->statistics().Take(nullptr);
    MeasureRounds(session, 1, &first);
    MeasureRounds(session, 1, &plain);
    session.session->statistics().Take(page);
    MeasureRounds(session, 1, &first);
    MeasureRounds(session, 1, &counted);
  }
  Print(std::move(plain), name + "_not_counted");
  Print(std::move(counted), name + "_counted");
}

void FillAnswers(DriverTable& table) {
  table.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int, size_t) {
    *blocks = 8;
    return CUDA_SUCCESS;
  };
  table.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
    *value = 0;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) {
    *value = 1;
    return CUDA_SUCCESS;
  };
}

void Run(const char* how) {
  FakeDriver driver;
  DriverTable table = driver.table();
  table.cuLaunchKernel = &Launch;
  table.cuStreamWriteValue64_v2 = &WriteValue;
  FillGraphs(table);
  FillAnswers(table);
  TestSession session(table, OneDevice());
  session.CreateStream(kStream);
  busy = false;
  Measure(session, std::string("launch_of_nothing") + how);
  busy = true;
  Measure(session, std::string("launch_after_much") + how);
  MeasureCounted(session, std::string("launch_after_much") + how);
}

}  // namespace
}  // namespace longwire::worker::testing

int main() {
  using namespace longwire::worker::testing;
  Run("");
  chains = true;
  Run("_in_chains");
}
