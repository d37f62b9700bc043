// Large copies, which have ways of their own: odd sizes, sources that change right after a copy,
// streams whose copies and kernels overlap, rows, many threads at once. With an argument all of it
// twice, the second time after a signal.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "check.h"

namespace {

using Bytes = std::vector<unsigned char>;

unsigned char Expected(size_t i, unsigned seed) {
  return static_cast<unsigned char>((i * 2654435761u + seed * 97u) >> 11);
}

void Fill(unsigned char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = Expected(i, seed);
}

bool Same(const unsigned char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (data[i] != Expected(i, seed)) return false;
  }
  return true;
}

// Adds 1 to every `step`-th byte.
__global__ void Touch(unsigned char* data, size_t bytes, size_t step) {
  for (size_t i = (blockIdx.x * blockDim.x + threadIdx.x) * step; i < bytes;
       i += gridDim.x * blockDim.x * step) {
    data[i] += 1;
  }
}

void OddSizes() {
  for (size_t bytes : {size_t{65537}, size_t{131071}, size_t{131072}, size_t{131073},
                       size_t{(1 << 20) + 7}, size_t{(5 << 20) + 13}, size_t{(33 << 20) + 1}}) {
    unsigned char* device = nullptr;
    CHECK(cudaMalloc(&device, bytes));
    Bytes source(bytes), back(bytes);
    Fill(source.data(), bytes, 1);
    CHECK(cudaMemcpy(device, source.data(), bytes, cudaMemcpyHostToDevice));
    // A pageable copy that has returned has read its source.
    std::memset(source.data(), 0xee, bytes);
    CHECK(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDeviceToHost));
    EXPECT(Same(back.data(), bytes, 1), "%zu bytes", bytes);
    // Not at the start of anything.
    size_t from = 12345;
    CHECK(cudaMemcpy(device + from, source.data(), bytes - from - 1, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(back.data() + 1, device + 1, bytes - 1, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; ++i) {
      bool kept = i < from || i == bytes - 1;
      EXPECT(back[i] == (kept ? Expected(i, 1) : 0xee), "byte %zu of %zu", i, bytes);
    }
    CHECK(cudaFree(device));
  }
}

void OverlappingStreams() {
  constexpr size_t kBytes = (3 << 20) + 11, kStep = 4099;
  constexpr int kStreams = 4;
  cudaStream_t streams[kStreams];
  unsigned char *device[kStreams], *in[kStreams], *out[kStreams];
  for (int s = 0; s < kStreams; ++s) {
    CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device[s], kBytes));
    CHECK(cudaMallocHost(&in[s], kBytes));
    CHECK(cudaMallocHost(&out[s], kBytes));
  }
  for (unsigned round = 0; round < 5; ++round) {
    for (int s = 0; s < kStreams; ++s) {
      Fill(in[s], kBytes, round + s);
      CHECK(cudaMemcpyAsync(device[s], in[s], kBytes, cudaMemcpyHostToDevice, streams[s]));
      Touch<<<2, 64, 0, streams[s]>>>(device[s], kBytes, kStep);
      CHECK(cudaMemcpyAsync(out[s], device[s], kBytes, cudaMemcpyDeviceToHost, streams[s]));
    }
    for (int s = kStreams - 1; s >= 0; --s) {
      CHECK(cudaStreamSynchronize(streams[s]));
      for (size_t i = 0; i < kBytes; ++i) {
        auto right = static_cast<unsigned char>(Expected(i, round + s) + (i % kStep == 0));
        EXPECT(out[s][i] == right, "byte %zu, stream %d, round %u", i, s, round);
      }
    }
  }
  for (int s = 0; s < kStreams; ++s) {
    CHECK(cudaFree(device[s]));
    CHECK(cudaFreeHost(in[s]));
    CHECK(cudaFreeHost(out[s]));
    CHECK(cudaStreamDestroy(streams[s]));
  }
}

// Who has waited for another stream's event sees the bytes of the copies before it.
void BytesBeforeAnotherStreamsEnd() {
  constexpr size_t kBytes = (6 << 20) + 1;
  unsigned char *device = nullptr, *out = nullptr;
  cudaStream_t copies, waits;
  cudaEvent_t copied;
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMallocHost(&out, kBytes));
  CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&waits, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&copied));
  for (int round = 0; round < 10; ++round) {
    CHECK(cudaMemsetAsync(device, round + 1, kBytes, copies));
    CHECK(cudaMemcpyAsync(out, device, kBytes, cudaMemcpyDeviceToHost, copies));
    CHECK(cudaEventRecord(copied, copies));
    CHECK(cudaStreamWaitEvent(waits, copied, 0));
    if (round % 2 == 0) {
      CHECK(cudaStreamSynchronize(waits));
    } else {
      while (cudaEventQuery(copied) == cudaErrorNotReady) {
      }
    }
    for (size_t i : {size_t{0}, kBytes / 3, kBytes / 2, kBytes - 1}) {
      EXPECT(out[i] == round + 1, "byte %zu, round %d", i, round);
    }
    CHECK(cudaStreamSynchronize(copies));
  }
  CHECK(cudaEventDestroy(copied));
  CHECK(cudaStreamDestroy(copies));
  CHECK(cudaStreamDestroy(waits));
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(out));
}

void Rows() {
  constexpr size_t kWidth = 3001, kRows = 701, kHostPitch = 3100;
  unsigned char* device = nullptr;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&device, &pitch, kWidth, kRows));
  Bytes source(kHostPitch * kRows), back(kHostPitch * kRows, 0x55);
  Fill(source.data(), source.size(), 3);
  CHECK(cudaMemcpy2D(device, pitch, source.data(), kHostPitch, kWidth, kRows,
                     cudaMemcpyHostToDevice));
  CHECK(
      cudaMemcpy2D(back.data(), kHostPitch, device, pitch, kWidth, kRows, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < back.size(); ++i) {
    bool copied = i % kHostPitch < kWidth;
    EXPECT(back[i] == (copied ? source[i] : 0x55), "byte %zu", i);
  }
  CHECK(cudaFree(device));
}

void CopyInThread(unsigned seed) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (unsigned round = 0; round < 6; ++round) {
    size_t bytes = 100'000 + (seed * 7919 + round * 104729) % 3'000'000;
    unsigned char* device = nullptr;
    CHECK(cudaMalloc(&device, bytes));
    Bytes source(bytes), back(bytes);
    Fill(source.data(), bytes, seed + round);
    CHECK(cudaMemcpyAsync(device, source.data(), bytes, cudaMemcpyHostToDevice, stream));
    std::memset(source.data(), 0, bytes);
    CHECK(cudaMemcpyAsync(back.data(), device, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(Same(back.data(), bytes, seed + round), "thread %u, round %u", seed, round);
    CHECK(cudaFree(device));
  }
  CHECK(cudaStreamDestroy(stream));
}

void ManyThreads() {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 8; ++seed) threads.emplace_back(CopyInThread, seed);
  for (std::thread& thread : threads) thread.join();
}

// More than may be under way: the server asks for the bytes when it has room.
void LargerThanTheWindow() {
  constexpr size_t kBytes = (40 << 20) + 3;
  unsigned char *device = nullptr, *host = nullptr;
  CHECK(cudaMalloc(&device, kBytes));
  CHECK(cudaMallocHost(&host, kBytes));
  Fill(host, kBytes, 9);
  CHECK(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, nullptr));
  CHECK(cudaDeviceSynchronize());
  std::memset(host, 0, kBytes);
  CHECK(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, nullptr));
  CHECK(cudaDeviceSynchronize());
  EXPECT(Same(host, kBytes, 9), "as it was");
  CHECK(cudaFree(device));
  CHECK(cudaFreeHost(host));
}

void CUDART_CB WaitForRelease(void* released) {
  while (!static_cast<std::atomic<bool>*>(released)->load()) std::this_thread::yield();
}

// Copies behind a stream that waits hold up no other's, whatever they use on their way; and what
// they use can be used again.
void BehindAStoppedStream() {
  constexpr size_t kBehind = (40 << 20) + 5, kBeside = (12 << 20) + 1;
  cudaStream_t stopped, other;
  unsigned char *behind = nullptr, *beside = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stopped, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&behind, kBehind));
  CHECK(cudaMalloc(&beside, kBeside));
  Bytes source(kBehind), back(kBehind);
  for (unsigned round = 0; round < 3; ++round) {
    std::atomic<bool> released{false};
    CHECK(cudaLaunchHostFunc(stopped, WaitForRelease, &released));
    std::thread copies([&] {
      Bytes mine(kBehind);
      Fill(mine.data(), kBehind, round);
      CHECK(cudaMemcpyAsync(behind, mine.data(), kBehind, cudaMemcpyHostToDevice, stopped));
      std::memset(mine.data(), 0, kBehind);
    });
    Fill(source.data(), kBeside, round + 7);
    CHECK(cudaMemcpyAsync(beside, source.data(), kBeside, cudaMemcpyHostToDevice, other));
    std::memset(source.data(), 0, kBeside);
    CHECK(cudaMemcpyAsync(back.data(), beside, kBeside, cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    EXPECT(Same(back.data(), kBeside, round + 7), "beside, round %u", round);
    released.store(true);
    copies.join();
    CHECK(cudaStreamSynchronize(stopped));
    CHECK(cudaMemcpy(back.data(), behind, kBehind, cudaMemcpyDeviceToHost));
    EXPECT(Same(back.data(), kBehind, round), "behind, round %u", round);
  }
  CHECK(cudaFree(behind));
  CHECK(cudaFree(beside));
  CHECK(cudaStreamDestroy(stopped));
  CHECK(cudaStreamDestroy(other));
}

void All() {
  OddSizes();
  OverlappingStreams();
  BytesBeforeAnotherStreamsEnd();
  Rows();
  ManyThreads();
  LargerThanTheWindow();
  // NVIDIA's driver may let such copies wait for each other.
  if (IsSoftwareDevice()) BehindAStoppedStream();
}

}  // namespace

int main(int count, char**) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, nullptr);  // also of the threads that start from here on
  All();
  if (count > 1) {
    std::printf("READY\n");
    std::fflush(stdout);
    int which = 0;
    sigwait(&signals, &which);
    All();
  }
  return Pass("large_copies");
}
