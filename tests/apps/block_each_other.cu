// Thread A queues 2,000 launches behind a wait for a word in memory; thread B's write of that word
// on another stream must get through although A's stream, and perhaps A itself, is held up.
// NVIDIA's driver 580 itself stops both threads for ever at about 1,024 launches: there, give a
// number below.
#include <atomic>
#include <chrono>
#include <thread>

#include "stream_values.h"

__global__ void Count(int* counter) { *counter += 1; }

int main(int count_of_arguments, char** arguments) {
  const int launches = count_of_arguments > 1 ? std::atoi(arguments[1]) : 2000;
  int* counters;
  CUdeviceptr flag;
  CHECK(cudaMalloc(&counters, 2 * sizeof(int)));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&flag), sizeof(unsigned)));
  CHECK(cudaMemset(counters, 0, 2 * sizeof(int)));
  CHECK(cudaMemset(reinterpret_cast<void*>(flag), 0, sizeof(unsigned)));
  const StreamValues values;
  cudaStream_t held, releasing;
  CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&releasing, cudaStreamNonBlocking));
  Count<<<1, 1, 0, held>>>(counters + 1);
  CHECK(cudaDeviceSynchronize());

  std::atomic<int> launched{0};
  std::thread a([&] {
    EXPECT(values.wait(held, flag, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS, "wait value");
    for (int i = 0; i < launches; ++i) {
      Count<<<1, 1, 0, held>>>(counters);
      CHECK(cudaGetLastError());
      ++launched;
    }
  });
  std::thread b([&] {
    // Until A has queued everything or is stuck in a full queue.
    int seen = -1;
    while (launched != seen && launched < launches) {
      seen = launched;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT(cudaStreamQuery(held) == cudaErrorNotReady, "the held stream ran on");
    int before = -1;
    CHECK(cudaMemcpyAsync(&before, counters, sizeof before, cudaMemcpyDeviceToHost, releasing));
    CHECK(cudaStreamSynchronize(releasing));
    EXPECT(before == 0, "%d kernels passed the wait", before);
    EXPECT(values.write(releasing, flag, 1, 0) == CUDA_SUCCESS, "write value");
    CHECK(cudaStreamSynchronize(releasing));
  });
  a.join();
  b.join();
  CHECK(cudaStreamSynchronize(held));
  int count = 0;
  CHECK(cudaMemcpy(&count, counters, sizeof count, cudaMemcpyDeviceToHost));
  EXPECT(count == launches, "%d of %d kernels ran", count, launches);
  CHECK(cudaStreamDestroy(held));
  CHECK(cudaStreamDestroy(releasing));
  return Pass("block_each_other");
}
