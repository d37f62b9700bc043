// What a program that rests between its requests waits for, and copies of every size: an ordinary
// driver-API program, run natively and through Longwire in turn (rested_table.py).
//
//   rested_figures rested|sizes|launches|requests
//
// launches and requests: each after a rest, for a trace of their hops (hop_trace.py).
#include <cuda.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "bench/driver_check.h"
#include "bench/figures.h"

namespace {

using longwire::bench::Clock;
using longwire::bench::MedianTime;
using longwire::bench::Percentile;
using longwire::bench::Print;
using longwire::bench::TimeOf;

// Adds 1 to a counter, so that lost or doubled work would be seen.
constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
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

constexpr int kKernels = 12;               // of a request
constexpr size_t kUp = size_t{64} << 10;   // bytes of a request
constexpr size_t kDown = size_t{4} << 10;  // bytes of its answer
constexpr size_t kInFlight = 8;            // copies under way at once

struct Device {
  CUfunction count{};
  CUstream stream{};
  CUdeviceptr counter{};
  bool software = false;

  Device() {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    char name[256] = {};
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof(name), device));
    software = std::strstr(name, "Software") != nullptr;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, kPtx));
    CHECK(cuModuleGetFunction(&count, module, "count"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&counter, sizeof(unsigned)));
    CHECK(cuMemsetD32(counter, 0, 1));
    CHECK(cuCtxSynchronize());
  }
  void Count() {
    void* parameters[] = {&counter};
    CHECK(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
  void Synchronize() { CHECK(cuStreamSynchronize(stream)); }
};

struct Rest {
  std::chrono::milliseconds time;
  int repetitions;
};
constexpr std::array kRests{
    Rest{std::chrono::milliseconds(0), 1000}, Rest{std::chrono::milliseconds(1), 300},
    Rest{std::chrono::milliseconds(10), 100}, Rest{std::chrono::milliseconds(50), 60}};

// The times of `work` after each rest; those of the first few do not count.
template <class Work>
void MeasureRested(const std::string& name, Work work) {
  constexpr int kFirst = 5;
  for (const Rest& rest : kRests) {
    std::vector<double> times;
    for (int i = 0; i < rest.repetitions + kFirst; ++i) {
      if (rest.time.count() != 0) std::this_thread::sleep_for(rest.time);
      double time = TimeOf(work);
      if (i >= kFirst) times.push_back(time);
    }
    const std::string row = name + "_rest_" + std::to_string(rest.time.count());
    Print((row + "_p50").c_str(), Percentile(times, 0.5), "us");
    Print((row + "_p99").c_str(), Percentile(times, 0.99), "us");
  }
}

// Bytes up, kernels, bytes down.
class Request {
 public:
  Request() {
    CHECK(cuMemAlloc(&input_, kUp));
    CHECK(cuMemAllocHost(&up_, kUp));
    CHECK(cuMemAllocHost(&down_, kDown));
    std::memset(up_, 1, kUp);
  }
  void Make(Device& device) {
    CHECK(cuMemcpyHtoDAsync(input_, up_, kUp, device.stream));
    for (int i = 0; i < kKernels; ++i) device.Count();
    CHECK(cuMemcpyDtoHAsync(down_, input_, kDown, device.stream));
    device.Synchronize();
  }
  bool CameBack() const { return std::memcmp(up_, down_, kDown) == 0; }

 private:
  CUdeviceptr input_{};
  void* up_ = nullptr;
  void* down_ = nullptr;
};

void Rested(Device& device) {
  Request request;
  unsigned expected = 0;
  MeasureRested("launch_synchronize", [&] {
    device.Count();
    device.Synchronize();
    ++expected;
  });
  MeasureRested("request", [&] {
    request.Make(device);
    expected += kKernels;
  });
  unsigned counted = 0;
  CHECK(cuMemcpyDtoH(&counted, device.counter, sizeof(counted)));
  if (counted == expected && request.CameBack()) return;
  std::fprintf(stderr, "lost or doubled work\n");
  std::exit(1);
}

template <class Work>
void AfterRests(Work work) {
  for (int i = 0; i < 160; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    work();
  }
}

void Launches(Device& device) {
  AfterRests([&] {
    device.Count();
    device.Synchronize();
  });
}

void Requests(Device& device) {
  Request request;
  AfterRests([&] { request.Make(device); });
}

std::string SizeText(size_t bytes) {
  return bytes < (size_t{1} << 20) ? std::to_string(bytes >> 10) + "KiB"
                                   : std::to_string(bytes >> 20) + "MiB";
}

// Copies of `bytes` one at a time and several in flight, each way.
void MeasureSize(Device& device, const std::string& kind, char* host, CUdeviceptr address,
                 const std::array<CUstream, kInFlight>& streams, size_t bytes) {
  const int repetitions = bytes > (size_t{16} << 20) ? 5 : 50;
  auto print = [&](const char* way, const char* flight, size_t copies, double time) {
    const std::string row = std::string(way) + "_" + kind + "_" + SizeText(bytes) + "_" + flight;
    Print(row.c_str(), static_cast<double>(bytes * copies) / 1e3 / time, "GB/s");
  };
  auto one = [&](auto copy) {
    return MedianTime(repetitions, [&] {
      copy(size_t{0}, device.stream);
      device.Synchronize();
    });
  };
  auto eight = [&](auto copy) {
    return MedianTime(repetitions, [&] {
      for (size_t i = 0; i < kInFlight; ++i) copy(i * bytes, streams[i]);
      for (CUstream stream : streams) CHECK(cuStreamSynchronize(stream));
    });
  };
  auto up = [&](size_t at, CUstream stream) {
    CHECK(cuMemcpyHtoDAsync(address + at, host + at, bytes, stream));
  };
  auto down = [&](size_t at, CUstream stream) {
    CHECK(cuMemcpyDtoHAsync(host + at, address + at, bytes, stream));
  };
  print("up", "one", 1, one(up));
  print("down", "one", 1, one(down));
  print("up", "eight", kInFlight, eight(up));
  print("down", "eight", kInFlight, eight(down));
}

void Sizes(Device& device) {
  // What the software device copies in a moment is nothing for a GPU.
  const size_t largest = size_t{device.software ? 4u : 256u} << 20;
  CUdeviceptr address;
  void* pinned = nullptr;
  std::array<CUstream, kInFlight> streams{};
  for (CUstream& stream : streams) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&address, largest * kInFlight));
  std::vector<char> pageable(largest * kInFlight);
  CHECK(cuMemAllocHost(&pinned, largest * kInFlight));
  // Not bytes that a trial of compression would make small.
  std::mt19937_64 random(1);
  for (size_t at = 0; at < pageable.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random();
    std::memcpy(&pageable[at], &bits, sizeof(bits));
  }
  std::memcpy(pinned, pageable.data(), pageable.size());
  for (size_t bytes = size_t{4} << 10; bytes <= largest; bytes *= 4) {
    MeasureSize(device, "pageable", pageable.data(), address, streams, bytes);
    MeasureSize(device, "pinned", static_cast<char*>(pinned), address, streams, bytes);
  }
  CHECK(cuMemFreeHost(pinned));
  CHECK(cuMemFree(address));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string group = argc > 1 ? argv[1] : "";
  constexpr struct {
    std::string_view name;
    void (*run)(Device&);
  } kGroups[] = {
      {"launches", Launches}, {"requests", Requests}, {"rested", Rested}, {"sizes", Sizes}};
  for (const auto& known : kGroups) {
    if (known.name != group) continue;
    Device device;
    known.run(device);
    return 0;
  }
  std::fprintf(stderr, "usage: rested_figures launches|requests|rested|sizes\n");
  return 2;
}
