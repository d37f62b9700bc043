// When a waiting copy to the device has returned, its bytes are what every stream's work finds, and
// queries of its stream say that it is done; and it does not return before earlier work of its
// stream.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"
#include "stream_values.h"

constexpr int kCount = 1 << 14;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr int kRounds = 200;

__global__ void CountWrong(const int* values, int expected, int* wrong) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (values[i] != expected) atomicAdd(wrong, 1);
}

struct Lane {
  cudaStream_t stream{};
  int* values = nullptr;
  int* wrong = nullptr;

  Lane() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&values, kBytes));
    CHECK(cudaMalloc(&wrong, sizeof(int)));
    CHECK(cudaMemset(wrong, 0, sizeof(int)));
    CHECK(cudaDeviceSynchronize());
  }
  int Wrong() {
    int host = -1;
    CHECK(cudaMemcpy(&host, wrong, sizeof(int), cudaMemcpyDeviceToHost));
    return host;
  }
};

// Small copies and larger ones, each used at once by a stream that does not wait for the default
// one.
static void UseAtOnce(int first) {
  Lane lane;
  std::vector<int> host(kCount);
  for (int round = 0; round < kRounds; ++round) {
    int value = first + round;
    for (int& each : host) each = value;
    for (int part = 0; part < 4; ++part) {
      CHECK(cudaMemcpy(lane.values + part * kCount / 4, host.data(), kBytes / 4,
                       cudaMemcpyHostToDevice));
    }
    CountWrong<<<kCount / 256, 256, 0, lane.stream>>>(lane.values, value, lane.wrong);
    CHECK(cudaStreamSynchronize(lane.stream));
    CHECK(cudaMemcpy(lane.values, host.data(), kBytes, cudaMemcpyHostToDevice));
    for (int& each : host) each = -1;  // the copy has its bytes
    CountWrong<<<kCount / 256, 256, 0, lane.stream>>>(lane.values, value, lane.wrong);
    CHECK(cudaStreamSynchronize(lane.stream));
  }
  EXPECT(lane.Wrong() == 0, "%d values were older than their copy", lane.Wrong());
}

// The default stream waits for a flag that work of another thread sets: the copy waits as long, and
// the other thread's work does not wait for the copy.
static void WaitForEarlierWork() {
  StreamValues values;
  Lane lane;
  int* flag = nullptr;
  CHECK(cudaMalloc(&flag, sizeof(int)));
  CHECK(cudaMemset(flag, 0, sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  auto place = reinterpret_cast<CUdeviceptr>(flag);
  EXPECT(values.wait(CU_STREAM_LEGACY, place, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS, "wait");
  std::atomic<bool> released{false};
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CountWrong<<<1, 256, 0, lane.stream>>>(lane.values, 0, lane.wrong);
    released.store(true);
    EXPECT(values.write(lane.stream, place, 1, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS,
           "write");
  });
  std::vector<int> host(1 << 20, 3);
  CHECK(cudaMemcpy(lane.values, host.data(), kBytes, cudaMemcpyHostToDevice));
  EXPECT(released.load(), "the copy returned before the work in front of it could have finished");
  other.join();
  CHECK(cudaDeviceSynchronize());
}

int main() {
  UseAtOnce(5000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(UseAtOnce, 1000 * i);
  for (std::thread& thread : threads) thread.join();
  WaitForEarlierWork();
  return Pass("early_uploads");
}
