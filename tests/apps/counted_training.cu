// For the tests of connections that break: work like a training loop's, of which the program knows
// every bit. Kernels count themselves on the device, each step's result hangs on all steps before,
// and large copies go both ways; the host computes the same and compares after each step. A call
// that is lost, doubled or out of order shows in the counter or in the values.
//
//   counted_training SECONDS [STEPS]     until both are over
//   counted_training stdin               until its standard input ends
//
// Exit code 3: a call failed; then every later one has to fail as well.
#include <chrono>
#include <thread>
#include <vector>

#include "check.h"
#include "time_to_run.h"
#include "try.h"

constexpr unsigned kWeights = 512;
constexpr unsigned kBatch = 16 << 10;  // words
constexpr unsigned kLaunches = 6;      // in a step
constexpr unsigned kLargeEvery = 4;    // steps between large copies
constexpr size_t kLargeWords = size_t{3} << 18;

__global__ void Train(unsigned* weights, const unsigned* batch, unsigned part, unsigned* launches) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(launches, 1u);
  weights[i] = weights[i] * 1664525u + batch[(i * 29 + part * 517) % kBatch];
}

// Every 1021st word of a large copy: the interpreter is slow.
__global__ void Touch(unsigned* large, unsigned step, unsigned* launches) {
  if (threadIdx.x == 0) atomicAdd(launches, 1u);
  for (size_t i = threadIdx.x * 1021; i < kLargeWords; i += 1021 * blockDim.x) large[i] += step;
}

static unsigned Random(unsigned* state) { return *state = *state * 1103515245u + 12345u; }

static unsigned *weights, *batch, *launches, *large, *pinned;
static cudaStream_t stream;
static cudaEvent_t done;
static std::vector<unsigned> host_weights(kWeights), host_batch(kBatch), host_large(kLargeWords),
    large_back(kLargeWords);
static unsigned launched = 0;

static cudaError_t Prepare() {
  TRY(cudaMalloc(&weights, kWeights * 4));
  TRY(cudaMalloc(&batch, kBatch * 4));
  TRY(cudaMalloc(&launches, 4));
  TRY(cudaMalloc(&large, kLargeWords * 4));
  TRY(cudaMemset(weights, 0, kWeights * 4));
  TRY(cudaMemset(launches, 0, 4));
  TRY(cudaMallocHost(&pinned, (kWeights + 1) * 4));
  TRY(cudaStreamCreate(&stream));
  return cudaEventCreate(&done);
}

static cudaError_t LargeCopies(unsigned step) {
  unsigned state = step;
  for (unsigned& word : host_large) word = Random(&state);
  TRY(cudaMemcpyAsync(large, host_large.data(), kLargeWords * 4, cudaMemcpyHostToDevice, stream));
  Touch<<<1, 32, 0, stream>>>(large, step, launches);
  TRY(cudaGetLastError());
  ++launched;
  TRY(cudaMemcpyAsync(large_back.data(), large, kLargeWords * 4, cudaMemcpyDeviceToHost, stream));
  TRY(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < kLargeWords; i += 1021) host_large[i] += step;
  EXPECT(host_large == large_back, "step %u: a large copy came back changed", step);
  return cudaSuccess;
}

static cudaError_t Step(unsigned step) {
  unsigned state = step * 2654435761u;
  for (unsigned& word : host_batch) word = Random(&state);
  TRY(cudaMemcpyAsync(batch, host_batch.data(), kBatch * 4, cudaMemcpyHostToDevice, stream));
  for (unsigned part = 0; part < kLaunches; ++part) {
    Train<<<kWeights / 128, 128, 0, stream>>>(weights, batch, part, launches);
    TRY(cudaGetLastError());
    ++launched;
    for (unsigned i = 0; i < kWeights; ++i) {
      host_weights[i] = host_weights[i] * 1664525u + host_batch[(i * 29 + part * 517) % kBatch];
    }
  }
  TRY(cudaMemcpyAsync(pinned, weights, kWeights * 4, cudaMemcpyDeviceToHost, stream));
  TRY(cudaMemcpyAsync(pinned + kWeights, launches, 4, cudaMemcpyDeviceToHost, stream));
  TRY(cudaEventRecord(done, stream));
  void* more = nullptr;
  TRY(cudaMallocAsync(&more, (1 + step % 7) << 16, stream));
  TRY(cudaFreeAsync(more, stream));
  TRY(cudaEventSynchronize(done));
  EXPECT(pinned[kWeights] == launched, "step %u: the device counted %u of %u launches", step,
         pinned[kWeights], launched);
  EXPECT(std::memcmp(pinned, host_weights.data(), kWeights * 4) == 0, "step %u: the weights differ",
         step);
  return step % kLargeEvery == 0 ? LargeCopies(step) : cudaSuccess;
}

static void ExpectNoSuccess() {
  void* more = nullptr;
  for (int i = 0; i < 10; ++i) {
    EXPECT(cudaDeviceSynchronize() != cudaSuccess, "after the end");
    EXPECT(cudaStreamSynchronize(stream) != cudaSuccess, "after the end");
    EXPECT(cudaEventSynchronize(done) != cudaSuccess, "after the end");
    EXPECT(cudaMemcpy(pinned, weights, 4, cudaMemcpyDeviceToHost) != cudaSuccess, "after the end");
    EXPECT(cudaMalloc(&more, 1024) != cudaSuccess, "after the end");
    Train<<<1, 1>>>(weights, batch, 0, launches);
    EXPECT(cudaGetLastError() != cudaSuccess, "after the end");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int main(int count, char** arguments) {
  TimeToRun time(count > 1 ? arguments[1] : "1");
  const unsigned steps = count > 2 ? std::atoi(arguments[2]) : 0;
  cudaError_t code = Prepare();
  unsigned step = 0;
  if (code == cudaSuccess) code = Step(step++);
  std::printf("READY\n");
  std::fflush(stdout);
  time.Begin();
  while (code == cudaSuccess && (step < steps || time.GoesOn())) code = Step(step++);
  if (code != cudaSuccess) {
    std::printf("ERROR %d of %s in step %u\n", code, failed, step);
    std::fflush(stdout);
    ExpectNoSuccess();
    return 3;
  }
  unsigned sum = 0;
  for (unsigned weight : host_weights) sum = sum * 31 + weight;
  std::printf("RESULT %08x of %u steps, %u launches\n", sum, step, launched);
  return Pass("counted_training");
}
