// Two devices in one program: memory, streams, events and globals of each, copies and waits between
// them, peer access, a thread for each. Everything is computed once more on the host.
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 14, kBlock = 128, kRounds = 20;
constexpr size_t kBytes = kCount * sizeof(unsigned);

__device__ unsigned device_addend;
__constant__ unsigned constant_factor;

__global__ void Step(unsigned* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * constant_factor + device_addend;
}

__global__ void Spin(unsigned* values, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) values[i] = values[i] * 3 + i;
}

__global__ void CopyWords(unsigned* to, const unsigned* from) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + 1;
}

struct Device {
  unsigned *values, *other;
  cudaStream_t stream;
  cudaEvent_t event;
};

static std::vector<unsigned> Numbers(unsigned seed) {
  std::vector<unsigned> numbers(kCount);
  for (int i = 0; i < kCount; ++i) numbers[i] = i * 2654435761u + seed;
  return numbers;
}

static void ExpectContent(const unsigned* device, const std::vector<unsigned>& wanted,
                          const char* what) {
  std::vector<unsigned> found(kCount);
  CHECK(cudaMemcpy(found.data(), device, kBytes, cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i) {
    EXPECT(found[i] == wanted[i], "%s: element %d is %u, not %u", what, i, found[i], wanted[i]);
  }
}

static void Prepare(int ordinal, Device* device) {
  CHECK(cudaSetDevice(ordinal));
  CHECK(cudaMalloc(&device->values, kBytes));
  CHECK(cudaMalloc(&device->other, kBytes));
  CHECK(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&device->event, cudaEventDisableTiming));
  const unsigned addend = 100 + ordinal, factor = 5 + 2 * ordinal;
  CHECK(cudaMemcpyToSymbol(device_addend, &addend, sizeof addend));
  CHECK(cudaMemcpyToSymbol(constant_factor, &factor, sizeof factor));
}

// What belongs to a device stays there, whichever is current.
static void CheckOwnership(const Device (&devices)[2]) {
  for (int ordinal = 0; ordinal < 2; ++ordinal) {
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, devices[ordinal].values));
    EXPECT(attributes.type == cudaMemoryTypeDevice, "type %d", attributes.type);
    EXPECT(attributes.device == ordinal, "device %d, not %d", attributes.device, ordinal);
  }
  size_t before[2], after[2], total;
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaMemGetInfo(&before[i], &total));
  }
  void* large;
  constexpr size_t kLarge = 200 << 20;
  CHECK(cudaMalloc(&large, kLarge));  // on the second device
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaMemGetInfo(&after[i], &total));
  }
  EXPECT(before[1] - after[1] >= kLarge, "%zu bytes less are free", before[1] - after[1]);
  EXPECT(before[0] <= after[0], "the other device lost %zu bytes", before[0] - after[0]);
  CHECK(cudaFree(large));  // the first one is current
}

// A copy from pageable memory may return before its bytes are there, and the devices' own streams
// do not wait for the legacy one.
static void WaitForBoth(int current) {
  for (int device : {1 - current, current}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaDeviceSynchronize());
  }
}

static void CheckCopies(const Device (&devices)[2]) {
  const std::vector<unsigned> first = Numbers(1), second = Numbers(2), zeros(kCount);
  int current = 0;
  auto fill = [&] {
    CHECK(cudaMemcpy(devices[0].values, first.data(), kBytes, cudaMemcpyDefault));
    CHECK(cudaMemcpy(devices[1].values, zeros.data(), kBytes, cudaMemcpyDefault));
    WaitForBoth(current);
  };
  for (; current < 2; ++current) {
    CHECK(cudaSetDevice(current));
    fill();
    CHECK(cudaMemcpyPeer(devices[1].values, 1, devices[0].values, 0, kBytes));
    ExpectContent(devices[1].values, first, "cudaMemcpyPeer");
    fill();
    CHECK(cudaMemcpy(devices[1].values, devices[0].values, kBytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
    ExpectContent(devices[1].values, first, "cudaMemcpy");
    fill();
    CHECK(cudaMemcpyPeerAsync(devices[1].values, 1, devices[0].values, 0, kBytes,
                              devices[current].stream));
    CHECK(cudaStreamSynchronize(devices[current].stream));
    ExpectContent(devices[1].values, first, "cudaMemcpyPeerAsync");
    fill();
    cudaMemcpy3DPeerParms box = {};
    constexpr size_t kWidth = 256, kRows = kBytes / kWidth;
    box.srcPtr = make_cudaPitchedPtr(devices[0].values, kWidth, kWidth, kRows);
    box.dstPtr = make_cudaPitchedPtr(devices[1].values, kWidth, kWidth, kRows);
    box.extent = make_cudaExtent(kWidth, kRows, 1);
    box.srcDevice = 0;
    box.dstDevice = 1;
    CHECK(cudaMemcpy3DPeer(&box));
    ExpectContent(devices[1].values, first, "cudaMemcpy3DPeer");
    CHECK(cudaMemcpy2DAsync(devices[1].values, kWidth, devices[0].values, kWidth, kWidth / 2, 1,
                            cudaMemcpyDeviceToDevice, devices[current].stream));
    // From the host to either device in either device's stream, and back.
    CHECK(cudaMemcpyAsync(devices[1 - current].values, second.data(), kBytes,
                          cudaMemcpyHostToDevice, devices[current].stream));
    std::vector<unsigned> back(kCount);
    CHECK(cudaMemcpyAsync(back.data(), devices[1 - current].values, kBytes, cudaMemcpyDeviceToHost,
                          devices[current].stream));
    CHECK(cudaStreamSynchronize(devices[current].stream));
    EXPECT(back == second, "through the other device's stream");
  }
}

// Each round: a slow kernel on one device, its result copied over and used on the other, and back.
static void CheckEvents(const Device (&devices)[2]) {
  std::vector<unsigned> wanted = Numbers(3);
  CHECK(cudaMemcpy(devices[0].values, wanted.data(), kBytes, cudaMemcpyDefault));
  WaitForBoth(0);
  for (int round = 0; round < kRounds; ++round) {
    const int from = round % 2, to = 1 - from;
    const Device &source = devices[from], &target = devices[to];
    CHECK(cudaSetDevice(from));
    Spin<<<kCount / kBlock, kBlock, 0, source.stream>>>(source.values, 20);
    Step<<<kCount / kBlock, kBlock, 0, source.stream>>>(source.values);
    CHECK(cudaEventRecord(source.event, source.stream));
    CHECK(cudaStreamWaitEvent(target.stream, source.event, 0));
    CHECK(cudaSetDevice(to));
    CHECK(cudaMemcpyPeerAsync(target.values, to, source.values, from, kBytes, target.stream));
    // The source must not be written again before it was copied.
    CHECK(cudaEventRecord(target.event, target.stream));
    CHECK(cudaStreamWaitEvent(source.stream, target.event, 0));
    for (int i = 0; i < kCount; ++i) {
      for (int spin = 0; spin < 20; ++spin) wanted[i] = wanted[i] * 3 + i;
      wanted[i] = wanted[i] * (5 + 2 * from) + 100 + from;
    }
  }
  for (const Device& device : devices) CHECK(cudaStreamSynchronize(device.stream));
  ExpectContent(devices[kRounds % 2].values, wanted, "after all rounds");
}

// As natively, copies between devices are no graph nodes.
static void CheckCapture(const Device (&devices)[2]) {
  CHECK(cudaSetDevice(0));
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(devices[0].stream, cudaStreamCaptureModeRelaxed));
  const cudaError_t copy =
      cudaMemcpyPeerAsync(devices[1].values, 1, devices[0].values, 0, kBytes, devices[0].stream);
  EXPECT(copy == cudaErrorStreamCaptureUnsupported, "a captured peer copy gave %d", copy);
  const cudaError_t end = cudaStreamEndCapture(devices[0].stream, &graph);
  EXPECT(end == cudaErrorStreamCaptureInvalidated, "its capture ended with %d", end);
  cudaGetLastError();
}

static void CheckPeerAccess(const Device (&devices)[2]) {
  int can = 0;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can == 0) return;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT(can == 0, "a device is no peer of itself");
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceEnablePeerAccess(1, 0));
  const cudaError_t again = cudaDeviceEnablePeerAccess(1, 0);
  EXPECT(again == cudaErrorPeerAccessAlreadyEnabled, "%d", again);
  cudaGetLastError();
  CHECK(cudaSetDevice(1));
  unsigned* later;
  CHECK(cudaMalloc(&later, 100 << 20));
  std::vector<unsigned> numbers = Numbers(4);
  CHECK(cudaMemcpy(devices[1].values, numbers.data(), kBytes, cudaMemcpyHostToDevice));
  CHECK(cudaSetDevice(0));
  unsigned* end = later + ((100 << 20) - kBytes) / sizeof *later;
  CopyWords<<<kCount / kBlock, kBlock, 0, devices[0].stream>>>(end, devices[1].values);
  CopyWords<<<kCount / kBlock, kBlock, 0, devices[0].stream>>>(devices[1].other, end);
  CHECK(cudaMemsetAsync(end, 7, kBytes, devices[0].stream));
  CHECK(cudaStreamSynchronize(devices[0].stream));
  for (unsigned& number : numbers) number += 2;
  ExpectContent(devices[1].other, numbers, "written through peer access");
  ExpectContent(end, std::vector<unsigned>(kCount, 0x07070707), "set through peer access");
  CHECK(cudaDeviceDisablePeerAccess(1));
  const cudaError_t off = cudaDeviceDisablePeerAccess(1);
  EXPECT(off == cudaErrorPeerAccessNotEnabled, "%d", off);
  const cudaError_t set = cudaMemset(end, 1, 4);
  EXPECT(set == cudaErrorInvalidValue, "a memset without access gave %d", set);
  cudaGetLastError();
  CHECK(cudaFree(later));
}

// Memory that comes from the stream's device, and a thread for each device.
static void CheckThreads(const Device (&devices)[2]) {
  std::vector<std::thread> threads;
  for (int ordinal = 0; ordinal < 2; ++ordinal) {
    threads.emplace_back([ordinal, &devices] {
      CHECK(cudaSetDevice(ordinal));
      std::vector<unsigned> numbers = Numbers(10 + ordinal);
      for (int round = 0; round < kRounds; ++round) {
        unsigned* values;
        CHECK(cudaMallocAsync(&values, kBytes, devices[ordinal].stream));
        CHECK(cudaMemcpyAsync(values, numbers.data(), kBytes, cudaMemcpyHostToDevice,
                              devices[ordinal].stream));
        Step<<<kCount / kBlock, kBlock, 0, devices[ordinal].stream>>>(values);
        CHECK(cudaMemcpyAsync(numbers.data(), values, kBytes, cudaMemcpyDeviceToHost,
                              devices[ordinal].stream));
        cudaPointerAttributes attributes;
        CHECK(cudaPointerGetAttributes(&attributes, values));
        EXPECT(attributes.device == ordinal, "device %d", attributes.device);
        CHECK(cudaFreeAsync(values, devices[ordinal].stream));
        CHECK(cudaStreamSynchronize(devices[ordinal].stream));
      }
      std::vector<unsigned> wanted = Numbers(10 + ordinal);
      for (unsigned& value : wanted) {
        for (int round = 0; round < kRounds; ++round) {
          value = value * (5 + 2 * ordinal) + 100 + ordinal;
        }
      }
      EXPECT(numbers == wanted, "the thread of device %d", ordinal);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int main() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count >= 2, "%d devices", count);
  const cudaError_t none = cudaSetDevice(count);
  EXPECT(none == cudaErrorInvalidDevice, "cudaSetDevice(%d) gave %d", count, none);
  cudaGetLastError();
  cudaDeviceProp properties[2];
  for (int i = 0; i < 2; ++i) CHECK(cudaGetDeviceProperties(&properties[i], i));
  EXPECT(std::memcmp(&properties[0].uuid, &properties[1].uuid, 16) != 0, "the same device twice");
  EXPECT(properties[0].pciBusID != properties[1].pciBusID ||
             properties[0].pciDomainID != properties[1].pciDomainID ||
             properties[0].pciDeviceID != properties[1].pciDeviceID,
         "the same place");
  Device devices[2];
  for (int i = 0; i < 2; ++i) Prepare(i, &devices[i]);
  CheckOwnership(devices);
  CheckCopies(devices);
  CheckEvents(devices);
  CheckCapture(devices);
  CheckPeerAccess(devices);
  CheckThreads(devices);
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceReset());  // the first device goes on
  CHECK(cudaSetDevice(0));
  const std::vector<unsigned> numbers = Numbers(5);
  CHECK(cudaMemcpy(devices[0].values, numbers.data(), kBytes, cudaMemcpyHostToDevice));
  ExpectContent(devices[0].values, numbers, "after the other device's reset");
  return Pass("two_devices");
}
