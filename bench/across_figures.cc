// What copies from one device to another cost beside uploads and downloads of the same size, in
// turn: an ordinary driver-API program for two devices, of one server or of two.
//
//   across_figures MIB ROUNDS [IN_FLIGHT]
//
// Each of IN_FLIGHT copies has memory and a stream of its own; their bytes count together. Every
// round's bytes are other ones, which no compression makes smaller, and are looked at when they
// come back.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
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

constexpr size_t kPage = 4096;

struct Side {
  CUcontext context{};
  std::vector<CUstream> streams;
  std::vector<CUdeviceptr> bytes;
};

Side Prepare(int ordinal, size_t size, size_t in_flight) {
  Side side;
  CUdevice device;
  CHECK(cuDeviceGet(&device, ordinal));
  CHECK(cuDevicePrimaryCtxRetain(&side.context, device));
  CHECK(cuCtxSetCurrent(side.context));
  side.streams.resize(in_flight);
  side.bytes.resize(in_flight);
  for (size_t i = 0; i < in_flight; ++i) {
    CHECK(cuStreamCreate(&side.streams[i], CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&side.bytes[i], size));
  }
  return side;
}

// Makes one copy in each stream of the side and waits for all.
template <class Make>
void MakeAll(const Side& side, Make make) {
  CHECK(cuCtxSetCurrent(side.context));
  for (size_t i = 0; i < side.streams.size(); ++i) make(i);
  for (CUstream stream : side.streams) CHECK(cuStreamSynchronize(stream));
}

void Upload(const Side& to, const unsigned char* host, size_t size) {
  MakeAll(to, [&](size_t i) { CHECK(cuMemcpyHtoDAsync(to.bytes[i], host, size, to.streams[i])); });
}

// All into the same memory: they have the same bytes.
void Download(const Side& from, unsigned char* host, size_t size) {
  MakeAll(from,
          [&](size_t i) { CHECK(cuMemcpyDtoHAsync(host, from.bytes[i], size, from.streams[i])); });
}

void Copy(const Side& to, const Side& from, size_t size) {
  MakeAll(to, [&](size_t i) {
    CHECK(cuMemcpyPeerAsync(to.bytes[i], to.context, from.bytes[i], from.context, size,
                            to.streams[i]));
  });
}

void Fill(unsigned char* bytes, size_t size, uint64_t seed) {
  for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    std::memcpy(bytes + i, &seed, sizeof(seed));
  }
}

// Other bytes in each page, so that a round's are known from the one before's.
void Mark(unsigned char* bytes, size_t size, uint64_t round) {
  for (size_t i = 0; i < size; i += kPage) std::memcpy(bytes + i, &round, sizeof(round));
}

void Expect(const unsigned char* found, const unsigned char* sent, size_t size, bool all) {
  bool equal = !all || std::memcmp(found, sent, size) == 0;
  for (size_t i = 0; i < size; i += kPage) {
    equal = equal && std::memcmp(found + i, sent + i, sizeof(uint64_t)) == 0;
  }
  if (equal) return;
  std::fprintf(stderr, "across_figures: a copy has other bytes than its source\n");
  std::exit(1);
}

struct Figures {
  std::vector<double> upload, copy, back, download;  // GB/s
};

template <class Work>
void Measure(std::vector<double>* found, size_t size, Work work) {
  const auto begun = Clock::now();
  work();
  found->push_back(static_cast<double>(size) / 1e3 / Microseconds(begun, Clock::now()));
}

// Up to the first device, over to the second, back to the first, and down. The first round makes
// the connections.
Figures Run(const Side& first, const Side& second, size_t size, long rounds) {
  unsigned char *sent = nullptr, *found = nullptr;
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&sent), size));
  CHECK(cuMemAllocHost(reinterpret_cast<void**>(&found), size));
  Fill(sent, size, 1);
  const size_t all = size * first.streams.size();
  Figures figures;
  for (long round = 0; round <= rounds; ++round) {
    if (round == 1) figures = {};
    Mark(sent, size, static_cast<uint64_t>(round));
    Measure(&figures.upload, all, [&] { Upload(first, sent, size); });
    Measure(&figures.copy, all, [&] { Copy(second, first, size); });
    Measure(&figures.back, all, [&] { Copy(first, second, size); });
    Measure(&figures.download, all, [&] { Download(first, found, size); });
    Expect(found, sent, size, round == rounds);
    std::printf("round %ld: upload %.3f, copy %.3f, back %.3f, download %.3f GB/s\n", round,
                figures.upload.back(), figures.copy.back(), figures.back.back(),
                figures.download.back());
  }
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  const long mebibytes = argc >= 3 ? std::atol(argv[1]) : 0;
  const long rounds = argc >= 3 ? std::atol(argv[2]) : 0;
  const long in_flight = argc == 4 ? std::atol(argv[3]) : 1;
  if (argc > 4 || mebibytes < 1 || mebibytes > 4096 || rounds < 1 || rounds > 1000 ||
      in_flight < 1 || in_flight > 64) {
    std::fprintf(stderr,
                 "across_figures: expects MIB (1 to 4096), ROUNDS (1 to 1000) and perhaps "
                 "IN_FLIGHT (1 to 64)\n");
    return 2;
  }
  const size_t size = static_cast<size_t>(mebibytes) << 20;
  CHECK(cuInit(0));
  const Side first = Prepare(0, size, static_cast<size_t>(in_flight));
  const Side second = Prepare(1, size, static_cast<size_t>(in_flight));
  const Figures figures = Run(first, second, size, rounds);
  const std::string what = "_" + std::to_string(mebibytes) + "MiB";
  Print(("upload" + what).c_str(), Median(figures.upload), "GB/s");
  Print(("copy" + what).c_str(), Median(figures.copy), "GB/s");
  Print(("back" + what).c_str(), Median(figures.back), "GB/s");
  Print(("download" + what).c_str(), Median(figures.download), "GB/s");
  return 0;
}
