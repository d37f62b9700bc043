// Copies of one size, as often as standard input says, so that somebody else can count what they
// cost all processes on their way (copy_steps.py). A line is WAY KIND BYTES FLIGHT COUNT:
//
//   up|down pageable|pinned 65536 1|8 200
//
// FLIGHT copies are under way at once, on a stream each, COUNT times. It answers each with DONE.
#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "bench/driver_check.h"

namespace {

constexpr size_t kMaxBytes = size_t{8} << 20;
constexpr size_t kMaxInFlight = 8;

class Copies {
 public:
  Copies() : pageable_(kMaxBytes * kMaxInFlight) {
    CUdevice device;
    CUcontext context;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    for (CUstream& stream : streams_) CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&address_, kMaxBytes * kMaxInFlight));
    CHECK(cuMemAllocHost(&pinned_, kMaxBytes * kMaxInFlight));
    // Not bytes that a trial of compression would make small.
    std::mt19937_64 random(1);
    for (size_t at = 0; at < pageable_.size(); at += sizeof(uint64_t)) {
      const uint64_t bits = random();
      std::memcpy(&pageable_[at], &bits, sizeof(bits));
    }
    std::memcpy(pinned_, pageable_.data(), pageable_.size());
  }
  void Make(bool up, bool pinned, size_t bytes, size_t flight) {
    char* host = pinned ? static_cast<char*>(pinned_) : pageable_.data();
    for (size_t i = 0; i < flight; ++i) {
      const size_t at = i * bytes;
      CHECK(up ? cuMemcpyHtoDAsync(address_ + at, host + at, bytes, streams_[i])
               : cuMemcpyDtoHAsync(host + at, address_ + at, bytes, streams_[i]));
    }
    for (size_t i = 0; i < flight; ++i) CHECK(cuStreamSynchronize(streams_[i]));
  }

 private:
  std::array<CUstream, kMaxInFlight> streams_{};
  CUdeviceptr address_{};
  void* pinned_ = nullptr;
  std::vector<char> pageable_;
};

}  // namespace

int main() {
  Copies copies;
  std::cout << "READY" << std::endl;
  std::string way, kind;
  size_t bytes = 0, flight = 0, count = 0;
  while (std::cin >> way >> kind >> bytes >> flight >> count) {
    bytes = std::min(bytes, kMaxBytes);
    flight = std::min(flight, kMaxInFlight);
    for (size_t i = 0; i < count; ++i) copies.Make(way == "up", kind == "pinned", bytes, flight);
    std::cout << "DONE" << std::endl;
  }
}
