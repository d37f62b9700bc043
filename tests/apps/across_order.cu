// A value goes from device to device and from stream to stream, at random: each step waits for the
// one before it by an event, copies the value over and changes it. Host functions see the steps in
// order. A wait that is passed too early gives another value.
//
//   across_order [STEPS [SEED]]
#include <atomic>
#include <cstdlib>
#include <random>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 10, kBlock = 128;
constexpr size_t kBytes = kCount * sizeof(unsigned);

__global__ void Change(unsigned* values, unsigned step, int spins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = values[i];
  for (int spin = 0; spin < spins; ++spin) value = value * 3 + i;
  values[i] = value + step;
}

struct Device {
  unsigned* values;
  cudaStream_t streams[3];  // the last is the legacy stream
};

struct Seen {
  unsigned step;
  static std::atomic<unsigned> next, wrong;
};
std::atomic<unsigned> Seen::next{0}, Seen::wrong{0};

static void Look(void* data) {
  const unsigned step = static_cast<Seen*>(data)->step;
  if (Seen::next.exchange(step + 1) != step) Seen::wrong.fetch_add(1);
}

static std::vector<Device> Prepare(int count) {
  std::vector<Device> devices(count);
  for (int i = 0; i < count; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaMalloc(&devices[i].values, kBytes));
    CHECK(cudaStreamCreateWithFlags(&devices[i].streams[0], cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&devices[i].streams[1]));
    devices[i].streams[2] = nullptr;
  }
  return devices;
}

int main(int argc, char** argv) {
  const unsigned steps = argc > 1 ? atoi(argv[1]) : 200, seed = argc > 2 ? atoi(argv[2]) : 1;
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count >= 2, "%d devices", count);
  std::vector<Device> devices = Prepare(count);
  std::mt19937 random(seed);
  std::vector<unsigned> wanted(kCount);
  for (int i = 0; i < kCount; ++i) wanted[i] = i * 2654435761u;
  CHECK(cudaSetDevice(0));
  CHECK(cudaMemcpy(devices[0].values, wanted.data(), kBytes, cudaMemcpyHostToDevice));
  // The copy may return before its bytes are there, and the first step's stream does not wait.
  CHECK(cudaDeviceSynchronize());
  std::vector<cudaEvent_t> events(steps);
  std::vector<Seen> seen(steps);
  int before = 0;
  for (unsigned step = 0; step < steps; ++step) {
    const int device = random() % count, spins = random() % 40;
    CHECK(cudaSetDevice(device));
    cudaStream_t stream = devices[device].streams[random() % 3];
    CHECK(cudaEventCreateWithFlags(&events[step], cudaEventDisableTiming));
    if (step != 0) CHECK(cudaStreamWaitEvent(stream, events[step - 1], 0));
    if (device != before) {
      CHECK(cudaMemcpyPeerAsync(devices[device].values, device, devices[before].values, before,
                                kBytes, stream));
    }
    Change<<<kCount / kBlock, kBlock, 0, stream>>>(devices[device].values, step, spins);
    seen[step].step = step;
    CHECK(cudaLaunchHostFunc(stream, Look, &seen[step]));
    CHECK(cudaEventRecord(events[step], stream));
    for (int i = 0; i < kCount; ++i) {
      for (int spin = 0; spin < spins; ++spin) wanted[i] = wanted[i] * 3 + i;
      wanted[i] += step;
    }
    before = device;
    // What the program itself waits for.
    const int wait = random() % 16;
    if (wait == 0) CHECK(cudaEventSynchronize(events[step]));
    if (wait == 1) CHECK(cudaDeviceSynchronize());
    if (wait == 2) CHECK(cudaStreamSynchronize(stream));
  }
  CHECK(cudaEventSynchronize(events[steps - 1]));
  std::vector<unsigned> found(kCount);
  CHECK(cudaMemcpy(found.data(), devices[before].values, kBytes, cudaMemcpyDefault));
  EXPECT(Seen::next == steps && Seen::wrong == 0, "%u of %u steps were out of order",
         Seen::wrong.load(), steps);
  EXPECT(found == wanted, "another value came out");
  puts("PASS across_order");
  return 0;
}
