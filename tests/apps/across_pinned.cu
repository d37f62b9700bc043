// Each device works on pinned memory of its own, which the program changes between two kernels, on
// all devices in turn and at once: every kernel sees what the program wrote before its launch, and
// the program what the kernels wrote. With QUESTIONS a kernel then runs on each device and answers
// what the program asks all of them meanwhile.
//
//   across_pinned [TURNS [QUESTIONS]]
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "check.h"

constexpr int kCount = 1 << 12, kBlock = 128;

__global__ void Add(unsigned* values, unsigned turn) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] = values[i] * 3 + turn + i;
}

// Answers each question, words that count up, once.
__global__ void Answer(volatile unsigned* words, unsigned questions) {
  for (unsigned question = 1; question <= questions; ++question) {
    while (words[0] != question) __nanosleep(1000);
    words[1] = question * 7;
  }
}

struct Device {
  volatile unsigned* words;  // the question and its answer
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
    void* words = nullptr;
    CHECK(cudaHostAlloc(&words, 2 * sizeof(unsigned), cudaHostAllocMapped));
    devices[i].words = static_cast<volatile unsigned*>(words);
    devices[i].words[0] = devices[i].words[1] = 0;
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

static void Ask(std::vector<Device>& devices, unsigned questions) {
  for (size_t i = 0; i < devices.size(); ++i) {
    CHECK(cudaSetDevice(i));
    Answer<<<1, 1, 0, devices[i].stream>>>(devices[i].words, questions);
    CHECK(cudaGetLastError());
  }
  const auto begun = std::chrono::steady_clock::now();
  for (unsigned question = 1; question <= questions; ++question) {
    for (Device& device : devices) device.words[0] = question;
    for (Device& device : devices) {
      while (device.words[1] != question * 7) {
        const bool late = std::chrono::steady_clock::now() - begun > std::chrono::seconds(60);
        EXPECT(!late, "no answer to question %u", question);
        std::this_thread::yield();
      }
    }
  }
  for (const Device& device : devices) CHECK(cudaStreamSynchronize(device.stream));
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
  if (argc > 2) Ask(devices, atoi(argv[2]));
  puts("PASS across_pinned");
  return 0;
}
