// A process for each device, as training has: in each round a kernel of every process, each of
// which waits until all have begun, and counts itself. They share a counter by IPC. Where the
// processes' turns did not agree, two such jobs would stand still for ever. It goes on until its
// input ends.
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <new>

#include "check.h"

using Counter = unsigned long long;

constexpr Counter kAhead = 4;  // rounds: each process always has work

// What the processes share on the host.
struct Common {
  cudaIpcMemHandle_t handle;
  std::atomic<int> has_handle{0};
  std::atomic<int> ready{0};
  std::atomic<Counter> last{~Counter{0}};  // round
};

__global__ void MeetAll(Counter* arrived, Counter wanted, Counter* rounds) {
  atomicAdd_system(arrived, 1);
  while (atomicAdd_system(arrived, 0) < wanted) __nanosleep(1000);
  *rounds += 1;
}

static Counter* TheCounter(Common* common, int rank) {
  Counter* arrived = nullptr;
  if (rank == 0) {
    CHECK(cudaMalloc(&arrived, sizeof(Counter)));
    CHECK(cudaMemset(arrived, 0, sizeof(Counter)));
    CHECK(cudaIpcGetMemHandle(&common->handle, arrived));
    common->has_handle = 1;
    return arrived;
  }
  while (common->has_handle == 0) usleep(1000);
  void* opened = nullptr;
  CHECK(cudaIpcOpenMemHandle(&opened, common->handle, cudaIpcMemLazyEnablePeerAccess));
  return static_cast<Counter*>(opened);
}

// Nobody is so far that it has begun a round behind the last.
static void MayStop(Common* common, Counter round) {
  pollfd input = {0, POLLIN, 0};
  if (common->last == ~Counter{0} && poll(&input, 1, 0) != 0) common->last = round + 4 * kAhead;
}

static Counter Rank(Common* common, int rank, int ranks, int device) {
  CHECK(cudaSetDevice(device));
  Counter* arrived = TheCounter(common, rank);
  Counter *rounds = nullptr, counted = 0, round = 0;
  CHECK(cudaMalloc(&rounds, sizeof(Counter)));
  CHECK(cudaMemset(rounds, 0, sizeof(Counter)));
  CHECK(cudaDeviceSynchronize());
  ++common->ready;
  while (common->ready != ranks) usleep(1000);
  if (rank == 0) {
    std::printf("READY %d\n", ranks);
    std::fflush(stdout);
  }
  while (round < common->last) {
    ++round;
    MeetAll<<<1, 1>>>(arrived, round * ranks, rounds);
    CHECK(cudaGetLastError());
    if (round % kAhead != 0) continue;
    CHECK(cudaDeviceSynchronize());
    if (rank == 0) MayStop(common, round);
  }
  CHECK(cudaMemcpy(&counted, rounds, sizeof(Counter), cudaMemcpyDeviceToHost));
  EXPECT(counted == round, "rank %d counted %llu rounds, not %llu", rank, counted, round);
  return round;
}

// Argument: the number of processes (default 2); each uses the next device.
int main(int words, char** arguments) {
  const int ranks = words > 1 ? std::atoi(arguments[1]) : 2;
  void* shared =
      mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT(shared != MAP_FAILED, "mmap failed");
  auto* common = new (shared) Common;
  int rank = 0;
  for (int other = 1; other < ranks && rank == 0; ++other) {
    if (fork() != 0) continue;
    rank = other;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  const Counter round = Rank(common, rank, ranks, rank % count);
  if (rank != 0) _exit(0);  // rank 0 keeps the counter until the others have ended
  for (int other = 1; other < ranks; ++other) {
    int status = 0;
    EXPECT(wait(&status) > 0 && status == 0, "another process ended with %d", status);
  }
  std::printf("ROUNDS %llu\n", round);
  return Pass("meeting_ranks");
}
