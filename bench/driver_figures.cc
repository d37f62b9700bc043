// What driver calls cost: an ordinary driver-API program, run once on the real libcuda and once
// through Longwire, whose output a runner puts side by side.
//
//   driver_figures [start|calls|copies|uploads|mirrored|all]
//   driver_figures session     a session that does what lines on its standard input say
#include <cuda.h>

#include <array>
#include <cstring>
#include <iostream>
#include <random>
#include <sstream>
#include <string>

#include "bench/driver_check.h"
#include "bench/figures.h"

namespace {

using longwire::bench::Clock;
using longwire::bench::MedianTime;
using longwire::bench::Microseconds;
using longwire::bench::Print;

// An empty kernel and one that adds 1 to a counter, so that lost work would be seen.
constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry count(.param .u64 counter)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [counter];
  cvta.to.global.u64 %rd2, %rd1;
  atom.global.add.u32 %r1, [%rd2], 1;
  ret;
}
)";

// Kernels add0, add1, … that add their second parameter to a counter.
std::string AddersPtx(int count) {
  std::string text = ".version 7.0\n.target sm_75\n.address_size 64\n";
  for (int i = 0; i < count; ++i) {
    text += ".visible .entry add" + std::to_string(i) + R"((.param .u64 counter, .param .u32 value)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [counter];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd1, %rd1;
  atom.global.add.u32 %r2, [%rd1], %r1;
  ret;
}
)";
  }
  return text;
}

struct Device {
  CUcontext context{};
  CUmodule module{};
  CUfunction nothing{}, count{};
  CUstream stream{};
  CUdeviceptr counter{};

  Device() {
    CUdevice device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&nothing, module, "nothing"));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&counter, 4));
    CHECK(cuMemsetD32(counter, 0, 1));
    CHECK(cuCtxSynchronize());
  }
  void Launch() { CHECK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr)); }
  void Count() {
    void* parameters[] = {&counter};
    CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
  void Synchronize() { CHECK(cuStreamSynchronize(stream)); }
  unsigned Counter() {
    unsigned value = 0;
    CHECK(cuMemcpyDtoHAsync(&value, counter, 4, stream));
    Synchronize();
    return value;
  }
};

void Start(Clock::time_point main_started) {
  Device device;
  device.Count();
  bool right = device.Counter() == 1;
  Print("start_to_first_result", Microseconds(main_started, Clock::now()) / 1000, "ms");
  if (!right) std::exit(1);
}

void RoundTrips(Device& device, const char* name) {
  Print(name,
        MedianTime(1000,
                   [&] {
                     device.Launch();
                     device.Synchronize();
                   }),
        "us");
}

void Launches(Device& device) {
  constexpr int kEnqueued = 1000, kSustained = 20000;
  std::vector<double> enqueue, sustained;
  for (int round = 0; round < 5; ++round) {
    device.Synchronize();
    auto start = Clock::now();
    for (int i = 0; i < kEnqueued; ++i) device.Launch();
    enqueue.push_back(Microseconds(start, Clock::now()) / kEnqueued);
    device.Synchronize();
    start = Clock::now();
    for (int i = 0; i < kSustained; ++i) device.Launch();
    device.Synchronize();
    sustained.push_back(Microseconds(start, Clock::now()) / kSustained);
  }
  Print("launch_enqueue", longwire::bench::Median(enqueue), "us");
  Print("launch_sustained", longwire::bench::Median(sustained), "us");
  RoundTrips(device, "launch_synchronize");
}

constexpr int kStepKernels = 200, kSteps = 50;

// `step` launches what a step has and returns what that adds to the counter.
template <class Step>
void MeasureSteps(Device& device, const char* name, Step step) {
  unsigned expected = device.Counter();
  Print(name,
        MedianTime(kSteps,
                   [&] {
                     expected += step();
                     device.Counter();
                   }),
        "us");
  if (device.Counter() == expected) return;
  std::fprintf(stderr, "lost or doubled launches\n");
  std::exit(1);
}

// One kernel; several, with other values in every step; and those in another order and of other
// sizes each time.
void Steps(Device& device) {
  constexpr unsigned kAdders = 7;
  CUmodule module{};
  std::array<CUfunction, kAdders> adders{};
  CHECK(cuModuleLoadData(&module, AddersPtx(kAdders).c_str()));
  for (unsigned i = 0; i < kAdders; ++i) {
    CHECK(cuModuleGetFunction(&adders[i], module, ("add" + std::to_string(i)).c_str()));
  }
  auto add = [&](unsigned which, unsigned blocks, unsigned value) {
    void* parameters[] = {&device.counter, &value};
    CHECK(cuLaunchKernel(adders[which], blocks, 1, 1, 1, 1, 1, 0, device.stream, parameters,
                         nullptr));
    return blocks * value;
  };
  MeasureSteps(device, "step_200_kernels_d2h", [&] {
    for (int i = 0; i < kStepKernels; ++i) device.Count();
    return unsigned{kStepKernels};
  });
  unsigned steps = 0;
  MeasureSteps(device, "step_200_other_values", [&] {
    unsigned sum = 0;
    ++steps;
    for (unsigned i = 0; i < kStepKernels; ++i) sum += add((i * i / 3 + i) % kAdders, 1, i + steps);
    return sum;
  });
  std::mt19937 random(1);
  MeasureSteps(device, "step_200_other_order", [&] {
    unsigned sum = 0;
    for (unsigned i = 0; i < kStepKernels; ++i) sum += add(random() % kAdders, 1 + random() % 4, i);
    return sum;
  });
  CHECK(cuModuleUnload(module));
}

void Events(Device& device) {
  CUevent event;
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK(cuEventRecord(event, device.stream));
  CHECK(cuEventSynchronize(event));
  Print("event_record", MedianTime(1000, [&] { CHECK(cuEventRecord(event, device.stream)); }),
        "us");
  CHECK(cuEventSynchronize(event));
  Print("event_query", MedianTime(1000, [&] { CHECK(cuEventQuery(event)); }), "us");
  Print("stream_query_idle", MedianTime(1000, [&] { cuStreamQuery(device.stream); }), "us");
  CHECK(cuEventDestroy(event));
}

void Graph(Device& device) {
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuStreamBeginCapture(device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < 50; ++i) device.Launch();
  CHECK(cuStreamEndCapture(device.stream, &graph));
  CHECK(cuGraphInstantiate(&exec, graph, 0));
  Print("graph_50_replay_sync",
        MedianTime(200,
                   [&] {
                     CHECK(cuGraphLaunch(exec, device.stream));
                     device.Synchronize();
                   }),
        "us");
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}

void Memory() {
  Print("alloc_free_1MiB",
        MedianTime(100,
                   [&] {
                     CUdeviceptr address;
                     CHECK(cuMemAlloc(&address, 1 << 20));
                     CHECK(cuMemFree(address));
                   }),
        "us");
  Print("memory_info",
        MedianTime(100,
                   [&] {
                     size_t free_bytes, total;
                     CHECK(cuMemGetInfo(&free_bytes, &total));
                   }),
        "us");
  Print("limit_query",
        MedianTime(100,
                   [&] {
                     size_t bytes;
                     CHECK(cuCtxGetLimit(&bytes, CU_LIMIT_MALLOC_HEAP_SIZE));
                   }),
        "us");
}

void CopyFigures(const char* kind, char* host, CUdeviceptr address, size_t bytes,
                 const char* size) {
  int repetitions = bytes > (1 << 20) ? 5 : 50;
  double gigabytes = static_cast<double>(bytes) / 1e9;
  double up = MedianTime(repetitions, [&] { CHECK(cuMemcpyHtoD(address, host, bytes)); });
  CHECK(cuCtxSynchronize());
  double down = MedianTime(repetitions, [&] { CHECK(cuMemcpyDtoH(host, address, bytes)); });
  std::string name = std::string(kind) + "_" + size;
  bool in_microseconds = bytes < (1 << 20);
  double scale = gigabytes * 1e6;
  Print(("h2d_" + name).c_str(), in_microseconds ? up : scale / up,
        in_microseconds ? "us" : "GB/s");
  Print(("d2h_" + name).c_str(), in_microseconds ? down : scale / down,
        in_microseconds ? "us" : "GB/s");
}

// What the software device copies in a moment is nothing for a GPU.
bool IsSoftware() {
  char name[256] = {};
  CHECK(cuDeviceGetName(name, sizeof(name), 0));
  return std::strstr(name, "Software") != nullptr;
}

void Copies() {
  struct Size {
    size_t bytes;
    const char* name;
  };
  const Size largest = IsSoftware() ? Size{16 << 20, "16MiB"} : Size{256 << 20, "256MiB"};
  CUdeviceptr address;
  CHECK(cuMemAlloc(&address, largest.bytes));
  std::vector<char> pageable(largest.bytes, 1);
  void* pinned = nullptr;
  CHECK(cuMemAllocHost(&pinned, largest.bytes));
  std::memset(pinned, 1, largest.bytes);
  for (Size size : {Size{4 << 10, "4KiB"}, Size{1 << 20, "1MiB"}, largest}) {
    CopyFigures("pageable", pageable.data(), address, size.bytes, size.name);
    CopyFigures("pinned", static_cast<char*>(pinned), address, size.bytes, size.name);
  }
  CHECK(cuMemFreeHost(pinned));
  CHECK(cuMemFree(address));
}

// Steps in a row without a wait, as training makes them: each begins with uploads from pinned
// memory while the one before is under way.
void StepsWithUploads(Device& device, const char* name, unsigned flags) {
  constexpr int kInARow = 20, kKernels = 100;
  constexpr size_t kBatch = 32 << 10;
  CUdeviceptr address, mapped;
  void* host = nullptr;
  CHECK(cuMemAlloc(&address, 2 * kBatch));
  CHECK(cuMemHostAlloc(&host, 2 * kBatch, flags));
  if ((flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0) CHECK(cuMemHostGetDevicePointer(&mapped, host, 0));
  auto step = [&] {
    for (size_t at : {size_t{0}, kBatch}) {
      CHECK(cuMemcpyHtoDAsync(address + at, static_cast<char*>(host) + at, kBatch, device.stream));
    }
    for (int i = 0; i < kKernels; ++i) device.Launch();
  };
  double all = MedianTime(5, [&] {
    for (int i = 0; i < kInARow; ++i) step();
    device.Synchronize();
  });
  Print(name, all / kInARow, "us");
  CHECK(cuMemFreeHost(host));
  CHECK(cuMemFree(address));
}

// Steps of a program with managed memory, of which it changes a word before each step and reads one
// after it.
void StepsWithManaged(Device& device) {
  constexpr size_t kWords = 64 << 10;
  CUdeviceptr address;
  CHECK(cuMemAllocManaged(&address, kWords * sizeof(unsigned), CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<volatile unsigned*>(address);
  unsigned steps = 0;
  MeasureSteps(device, "step_200_managed", [&] {
    ++steps;
    words[steps % kWords] = steps;
    for (int i = 0; i < kStepKernels; ++i) device.Count();
    device.Synchronize();
    if (words[steps % kWords] != steps) std::exit(1);
    return unsigned{kStepKernels};
  });
  CHECK(cuMemFree(address));
}

// For figures of many sessions at once: says READY, then answers lines, each with its figures and
// an empty line.
//
//   launch COUNT    launches, each waited for
//   copy BYTES      there and back, from and to ordinary memory
int Serve(Device& device) {
  std::cout << "READY" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    size_t amount = 0;
    if (!(words >> what >> amount) || amount == 0) return 2;
    if (what == "launch") {
      std::vector<double> times;
      auto work = [&] {
        device.Launch();
        device.Synchronize();
      };
      for (size_t i = 0; i < amount; ++i) times.push_back(longwire::bench::TimeOf(work));
      Print("launch_synchronize_p50", longwire::bench::Percentile(times, 0.5), "us");
      Print("launch_synchronize_p99", longwire::bench::Percentile(times, 0.99), "us");
    } else if (what == "copy") {
      CUdeviceptr address;
      std::vector<char> host(amount, 1);
      CHECK(cuMemAlloc(&address, amount));
      CHECK(cuMemcpyHtoD(address, host.data(), amount));
      CHECK(cuMemcpyDtoH(host.data(), address, amount));
      CHECK(cuMemFree(address));
    } else {
      return 2;
    }
    std::cout << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto main_started = Clock::now();
  std::string group = argc > 1 ? argv[1] : "all";
  if (group == "start") {
    Start(main_started);
    return 0;
  }
  Device device;
  if (group == "session") return Serve(device);
  if (group == "launches") {  // as many as requested, for counting instructions
    for (int i = argc > 2 ? std::atoi(argv[2]) : 0; i > 0; --i) device.Launch();
    device.Synchronize();
    return 0;
  }
  if (group == "calls" || group == "all") {
    Launches(device);
    Steps(device);
    Events(device);
    Graph(device);
    Memory();
  }
  if (group == "copies" || group == "all") {
    Copies();
    RoundTrips(device, "launch_sync_after_copies");  // beside connections that large copies opened
  }
  if (group == "uploads" || group == "all") {
    StepsWithUploads(device, "upload_step_pinned", 0);
    StepsWithUploads(device, "upload_step_mapped", CU_MEMHOSTALLOC_DEVICEMAP);
  }
  if (group == "mirrored" || group == "all") StepsWithManaged(device);
  return 0;
}
