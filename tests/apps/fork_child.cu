// A child forked before CUDA was first used can use it; one forked afterwards gets
// cudaErrorInitializationError from everything, and neither disturbs the parent. The program's own
// wait never sees a process it did not start.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "check.h"

__global__ void Write(int* memory, int value) { *memory = value; }

static void Compute(int value) {
  int *memory, seen = 0;
  CHECK(cudaMalloc(&memory, sizeof(int)));
  Write<<<1, 1>>>(memory, value);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&seen, memory, sizeof seen, cudaMemcpyDeviceToHost));
  EXPECT(seen == value, "the kernel wrote %d, not %d", seen, value);
  CHECK(cudaFree(memory));
}

// Waits for any child, as a shell does; it must be the one that was started.
static void WaitFor(pid_t child, const char* what) {
  int status = 0;
  const pid_t ended = waitpid(-1, &status, 0);
  EXPECT(ended == child, "%s: waited for %d, got %d", what, child, ended);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with status %x", what, status);
}

int main() {
  pid_t child = fork();
  if (child == 0) {
    Compute(11);
    std::fflush(stdout);
    _exit(0);
  }
  WaitFor(child, "the child before the first call");

  Compute(22);
  child = fork();
  if (child == 0) {
    void* memory = nullptr;
    const cudaError_t allocation = cudaMalloc(&memory, 4);
    const cudaError_t synchronize = cudaDeviceSynchronize();
    const bool right =
        allocation == cudaErrorInitializationError && synchronize == cudaErrorInitializationError;
    if (!right) std::printf("FAIL in the child: %d and %d\n", allocation, synchronize);
    std::fflush(stdout);
    _exit(right ? 0 : 1);
  }
  WaitFor(child, "the child after the first call");
  Compute(33);
  EXPECT(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD, "there is a strange child");
  return Pass("fork_child");
}
