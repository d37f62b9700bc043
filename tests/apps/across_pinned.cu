// Each device works on pinned memory of its own, which the program changes between two kernels, on
// all devices in turn and at once: every kernel sees what the program wrote before its launch, and
// the program what the kernels wrote.
//
//   across_pinned [TURNS]
#include <cstdlib>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 12, kBlock = 128;

__global__ void Add(unsigned* values, unsigned turn) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 3 + turn + i;
}

struct Device {
  unsigned* pinned;
  unsigned* seen;  // of the kernels
  cudaStream_t stream;
  std::vector<unsigned> wanted;
};

static std::vector<Device> Prepare(int count) {
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaHostAlloc(&devices[i].pinned, kCount * sizeof(unsigned), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&devices[i].seen, devices[i].pinned, 0));
    CHECK(cudaStreamCreateWithFlags(&devices[i].stream, cudaStreamNonBlocking));
    devices[i].wanted.assign(kCount, 0);
    for (int at = 0; at < kCount; ++at) devices[i].pinned[at] = 0;
  }
  return devices;
}

static void Begin(Device& device, int number, unsigned turn) {
  CHECK(cudaSetDevice(number));
  for (int at = turn % 7; at < kCount; at += 5) {
    device.pinned[at] += turn;
    device.wanted[at] += turn;
  }
  Add<<<kCount / kBlock, kBlock, 0, device.stream>>>(device.seen, turn);
  CHECK(cudaGetLastError());
  for (int at = 0; at < kCount; ++at) device.wanted[at] = device.wanted[at] * 3 + turn + at;
}

static void End(const Device& device, int number) {
  CHECK(cudaStreamSynchronize(device.stream));
  for (int at = 0; at < kCount; ++at) {
    EXPECT(device.pinned[at] == device.wanted[at], "device %d: value %d is %u, not %u", number, at,
           device.pinned[at], device.wanted[at]);
  }
}

int main(int argc, char** argv) {
  const unsigned turns = argc > 1 ? atoi(argv[1]) : 60;
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count >= 2, "%d devices", count);
  std::vector<Device> devices = Prepare(count);
  for (unsigned turn = 1; turn <= turns; ++turn) {
    const bool at_once = turn % 2 == 0;
    for (int i = 0; i < count; ++i) {
      Begin(devices[i], i, turn);
      if (!at_once) End(devices[i], i);
    }
    for (int i = 0; at_once && i < count; ++i) End(devices[i], i);
  }
  puts("PASS across_pinned");
  return 0;
}
