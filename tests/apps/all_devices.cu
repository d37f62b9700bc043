// One thread that works on all its devices as training does: in each round a kernel on every
// device, each of which waits until all have begun, and counts itself. Where turns on the devices
// did not agree, two such programs would stand still for ever. It goes on until its input ends.
// Argument: the round in which device 1 makes a fault (default: none).
#include <poll.h>

#include <cstdlib>
#include <vector>

#include "check.h"

using Counter = unsigned long long;

__global__ void MeetAll(Counter* arrived, Counter wanted, Counter* rounds, Counter* fault) {
  if (fault != nullptr) *fault = 1;
  atomicAdd_system(arrived, 1);
  while (atomicAdd_system(arrived, 0) < wanted) __nanosleep(1000);
  *rounds += 1;
}

struct Device {
  Counter* rounds;
  cudaStream_t stream;
};

constexpr int kAhead = 4;  // rounds: it always has work

static Counter Read(const Counter* counter) {
  Counter value = 0;
  CHECK(cudaMemcpy(&value, counter, sizeof(value), cudaMemcpyDeviceToHost));
  return value;
}

static std::vector<Device> Prepare(int count) {
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i) {
    CHECK(cudaSetDevice(i));
    if (i != 0) CHECK(cudaDeviceEnablePeerAccess(0, 0));
    CHECK(cudaMalloc(&devices[i].rounds, sizeof(Counter)));
    CHECK(cudaMemset(devices[i].rounds, 0, sizeof(Counter)));
    CHECK(cudaDeviceSynchronize());  // the stream does not wait for the legacy one
    CHECK(cudaStreamCreateWithFlags(&devices[i].stream, cudaStreamNonBlocking));
  }
  return devices;
}

int main(int words, char** arguments) {
  const Counter fault_at = words > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0;
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  std::vector<Device> devices = Prepare(count);
  Counter* arrived = nullptr;
  CHECK(cudaSetDevice(0));
  CHECK(cudaMalloc(&arrived, sizeof(Counter)));
  CHECK(cudaMemset(arrived, 0, sizeof(Counter)));
  CHECK(cudaDeviceSynchronize());
  std::printf("READY %d\n", count);
  std::fflush(stdout);
  Counter round = 0;
  for (pollfd input = {0, POLLIN, 0}; round % kAhead != 0 || poll(&input, 1, 0) == 0;) {
    ++round;
    for (int i = 0; i < count; ++i) {
      CHECK(cudaSetDevice(i));
      // An address that belongs to nobody.
      auto* fault = reinterpret_cast<Counter*>(round == fault_at && i == 1 ? 0x8 : 0);
      MeetAll<<<1, 1, 0, devices[i].stream>>>(arrived, round * count, devices[i].rounds, fault);
      CHECK(cudaGetLastError());
    }
    for (int i = 0; i < count && round % kAhead == 0; ++i) {
      CHECK(cudaSetDevice(i));
      CHECK(cudaStreamSynchronize(devices[i].stream));
    }
  }
  EXPECT(Read(arrived) == round * count, "%llu kernels met, not %llu", Read(arrived),
         round * count);
  for (int i = 0; i < count; ++i) {
    EXPECT(Read(devices[i].rounds) == round, "device %d counted %llu rounds, not %llu", i,
           Read(devices[i].rounds), round);
  }
  std::printf("ROUNDS %llu\n", round);
  return Pass("all_devices");
}
