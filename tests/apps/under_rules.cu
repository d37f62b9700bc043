// For the tests of rules: does what each argument says and prints how it went.
#include <string>

#include "check.h"

__global__ void Shape(int* sizes) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  sizes[0] = gridDim.x;
  sizes[1] = blockDim.x;
}

__global__ void Add(int* sum, int value) { *sum += value; }

static int* memory;

static const char* Name(cudaError_t code) { return cudaGetErrorName(code); }

// What the launch, or the wait for it, gave; the runtime keeps it until it is asked for.
static cudaError_t Wait() {
  const cudaError_t launched = cudaGetLastError();
  const cudaError_t waited = cudaDeviceSynchronize();
  cudaGetLastError();
  return launched != cudaSuccess ? launched : waited;
}

static void TellShape() {
  Shape<<<4, 64>>>(memory);
  const cudaError_t result = Wait();
  int sizes[2] = {};
  CHECK(cudaMemcpy(sizes, memory, sizeof sizes, cudaMemcpyDeviceToHost));
  std::printf("shape %s %d %d\n", Name(result), sizes[0], sizes[1]);
}

static void AddSome() {
  int sum = 0;
  CHECK(cudaMemset(memory, 0, sizeof sum));
  for (int i = 1; i <= 100; ++i) Add<<<1, 1>>>(memory, i);
  const cudaError_t result = Wait();
  CHECK(cudaMemcpy(&sum, memory, sizeof sum, cudaMemcpyDeviceToHost));
  std::printf("add %s %d\n", Name(result), sum);
}

static void Upload() {
  int value = 7;
  const cudaError_t copied = cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice);
  const cudaError_t waited = cudaDeviceSynchronize();
  cudaGetLastError();
  std::printf("up %s\n", Name(copied != cudaSuccess ? copied : waited));
}

// Far beyond what is allocated, but where the device's addresses are.
static void LaunchBeyond() {
  Add<<<1, 1>>>(memory + (size_t{1} << 31), 1);
  std::printf("beyond %s\n", Name(Wait()));
}

static void TellLog() {
  char text[25600] = {};
  size_t bytes = sizeof text;
  CHECK(cudaLogsDumpToMemory(nullptr, text, &bytes, 0));
  std::printf("log %s", text);
}

int main(int count, char** arguments) {
  CHECK(cudaMalloc(&memory, 4096));
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "shape") TellShape();
    if (word == "add") AddSome();
    if (word == "up") Upload();
    if (word == "beyond") LaunchBeyond();
    if (word == "log") TellLog();
    if (word == "ready") {  // goes on with a line of input
      std::printf("READY\n");
      std::fflush(stdout);
      char line[8];
      if (std::fgets(line, sizeof line, stdin) == nullptr) return 1;
    }
  }
  return Pass("under_rules");
}
