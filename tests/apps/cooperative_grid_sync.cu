// A cooperative launch whose blocks read what other blocks wrote before the grid's barrier.
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace groups = cooperative_groups;

constexpr int kBlocks = 4, kThreads = 64, kRounds = 6;

__global__ void Rotate(int* current, int* next) {
  groups::grid_group grid = groups::this_grid();
  const int count = kBlocks * kThreads;
  const int i = static_cast<int>(grid.thread_rank());
  for (int round = 0; round < kRounds; ++round) {
    // The neighbour is another block's element for every thread.
    next[i] = current[(i + kThreads) % count] + 1;
    grid.sync();
    int* swapped = current;
    current = next;
    next = swapped;
  }
}

int main() {
  int cooperative = 0;
  CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  EXPECT(cooperative == 1, "the device has no cooperative launch");
  const int count = kBlocks * kThreads;
  std::vector<int> values(count), result(count);
  for (int i = 0; i < count; ++i) values[i] = i * 10;
  int *current, *next;
  CHECK(cudaMalloc(&current, count * sizeof(int)));
  CHECK(cudaMalloc(&next, count * sizeof(int)));
  CHECK(cudaMemcpy(current, values.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  void* arguments[] = {&current, &next};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(Rotate), dim3(kBlocks),
                                    dim3(kThreads), arguments, 0, nullptr));
  static_assert(kRounds % 2 == 0, "the result must end in the first array");
  CHECK(cudaMemcpy(result.data(), current, count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i) {
    const int expected = values[(i + kRounds * kThreads) % count] + kRounds;
    EXPECT(result[i] == expected, "element %d is %d, not %d", i, result[i], expected);
  }
  // More blocks than can be resident at once must be refused at once.
  cudaError_t refused = cudaLaunchCooperativeKernel(
      reinterpret_cast<const void*>(Rotate), dim3(1 << 20), dim3(kThreads), arguments, 0, nullptr);
  EXPECT(refused == cudaErrorCooperativeLaunchTooLarge, "too large a grid gave %d", refused);
  (void)cudaGetLastError();
  CHECK(cudaDeviceSynchronize());
  return Pass("cooperative_grid_sync");
}
