// What a copy from one device to another costs beside an upload of the same size, in turn: an
// ordinary driver-API program for two devices, of one server or of two.
//
//   across_figures MIB ROUNDS
#include <cuda.h>

#include <cstring>
#include <string>
#include <vector>

#include "bench/driver_check.h"
#include "bench/figures.h"

namespace {

using longwire::bench::Clock;
using longwire::bench::Median;
using longwire::bench::Microseconds;
using longwire::bench::Print;

struct Side {
  CUcontext context{};
  CUstream stream{};
  CUdeviceptr bytes{};
};

Side Prepare(int ordinal, size_t size) {
  Side side;
  CUdevice device;
  CHECK(cuDeviceGet(&device, ordinal));
  CHECK(cuDevicePrimaryCtxRetain(&side.context, device));
  CHECK(cuCtxSetCurrent(side.context));
  CHECK(cuStreamCreate(&side.stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemAlloc(&side.bytes, size));
  return side;
}

void Wait(const Side& side) {
  CHECK(cuCtxSetCurrent(side.context));
  CHECK(cuStreamSynchronize(side.stream));
}

void Upload(const Side& to, const unsigned char* host, size_t size) {
  CHECK(cuCtxSetCurrent(to.context));
  CHECK(cuMemcpyHtoDAsync(to.bytes, host, size, to.stream));
  CHECK(cuStreamSynchronize(to.stream));
}

void Copy(const Side& to, const Side& from, size_t size) {
  CHECK(cuCtxSetCurrent(to.context));
  CHECK(cuMemcpyPeerAsync(to.bytes, to.context, from.bytes, from.context, size, to.stream));
  CHECK(cuStreamSynchronize(to.stream));
}

// Other bytes each time, which no compression makes smaller.
void Fill(unsigned char* bytes, size_t size, uint64_t seed) {
  for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    std::memcpy(bytes + i, &seed, sizeof(seed));
  }
}

template <class Work>
double GigabytesPerSecond(size_t size, Work work) {
  const auto begun = Clock::now();
  work();
  return static_cast<double>(size) / 1e3 / Microseconds(begun, Clock::now());
}

}  // namespace

int main(int argc, char** argv) {
  const long mebibytes = argc == 3 ? std::atol(argv[1]) : 0;
  const long rounds = argc == 3 ? std::atol(argv[2]) : 0;
  if (mebibytes < 1 || mebibytes > 4096 || rounds < 1 || rounds > 1000) {
    std::fprintf(stderr, "across_figures: expects MIB (1 to 4096) and ROUNDS (1 to 1000)\n");
    return 2;
  }
  const size_t size = static_cast<size_t>(mebibytes) << 20;
  CHECK(cuInit(0));
  const Side from = Prepare(0, size), to = Prepare(1, size);
  unsigned char* host = nullptr;
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&host), size));
  Fill(host, size, 1);
  Upload(from, host, size);
  const std::vector<unsigned char> sent(host, host + size);
  Copy(to, from, size);  // the first one makes the connections
  std::vector<double> uploads, copies;
  for (long round = 0; round < rounds; ++round) {
    Fill(host, size, static_cast<uint64_t>(round) + 2);
    uploads.push_back(GigabytesPerSecond(size, [&] { Upload(to, host, size); }));
    copies.push_back(GigabytesPerSecond(size, [&] { Copy(to, from, size); }));
    std::printf("round %ld: upload %.3f, copy %.3f GB/s\n", round, uploads.back(), copies.back());
  }
  Wait(from);
  CHECK(cuCtxSetCurrent(to.context));
  CHECK(cuMemcpyDtoH(host, to.bytes, size));
  if (std::memcmp(host, sent.data(), size) != 0) {
    std::fprintf(stderr, "across_figures: the copy has other bytes than its source\n");
    return 1;
  }
  Print(("upload_" + std::to_string(mebibytes) + "MiB").c_str(), Median(uploads), "GB/s");
  Print(("copy_" + std::to_string(mebibytes) + "MiB").c_str(), Median(copies), "GB/s");
  return 0;
}
