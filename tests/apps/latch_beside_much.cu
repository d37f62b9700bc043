// A kernel holds its stream until the program, which has queued all the rest meanwhile, sets a flag
// and waits: beside other memory that program and kernels share. Arguments: MiB of that memory,
// whether it is managed or pinned, the seconds after which it gives up with exit code 2, and where
// the flag is: pinned memory whose address is the kernel's argument, the same where the kernel
// finds the address on the device (stored), or managed memory, also of a variable.
#include <thread>

#include "live.h"

namespace {

constexpr int kRounds = 6, kThreads = 256, kStep = 1024;  // words between those that are looked at

__managed__ unsigned managed_latch;

__global__ void Hold(const volatile unsigned* latch) {
  while (*latch == 0) {
  }
}

__global__ void HoldStored(const volatile unsigned* const* latch) {
  while (**latch == 0) {
  }
}

__global__ void Add(unsigned* words, size_t count, unsigned value) {
  const size_t at = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kStep;
  if (at < count) words[at] += value;
}

// A wait for a kernel that is held for ever does not return.
void EndInTime(double seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::printf("STANDS STILL at the wait\n");
    std::fflush(stdout);
    std::_Exit(2);
  }).detach();
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count > 3, "arguments");
  const size_t words = (std::strtoull(arguments[1], nullptr, 10) << 20) / sizeof(unsigned);
  EndInTime(std::atof(arguments[3]));
  const char* where = count > 4 ? arguments[4] : "argument";
  const bool stored = std::strcmp(where, "stored") == 0;
  unsigned* latch = &managed_latch;
  if (std::strcmp(where, "managed") == 0) {
    CHECK(cudaMallocManaged(&latch, sizeof(*latch)));
  } else if (std::strcmp(where, "variable") != 0) {
    latch = reinterpret_cast<unsigned*>(live::Words(sizeof(uint64_t)));
  }
  unsigned** place = nullptr;  // of the flag's address
  CHECK(cudaMalloc(&place, sizeof(*place)));
  CHECK(cudaMemcpy(place, &latch, sizeof(latch), cudaMemcpyHostToDevice));
  unsigned* memory = nullptr;
  if (std::strcmp(arguments[2], "managed") == 0) {
    CHECK(cudaMallocManaged(&memory, words * sizeof(unsigned)));
  } else {
    memory = reinterpret_cast<unsigned*>(live::Words(words * sizeof(unsigned)));
  }
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (unsigned round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < words; i += kStep) memory[i] = static_cast<unsigned>(i) + round;
    __atomic_store_n(latch, 0, __ATOMIC_RELEASE);
    if (stored) {
      HoldStored<<<1, 1, 0, stream>>>(place);
    } else {
      Hold<<<1, 1, 0, stream>>>(latch);
    }
    const auto blocks = static_cast<unsigned>((words / kStep + kThreads - 1) / kThreads);
    Add<<<blocks, kThreads, 0, stream>>>(memory, words, 7 * round + 1);
    CHECK(cudaGetLastError());
    // What is compared for the launches has been compared.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    __atomic_store_n(latch, 1, __ATOMIC_RELEASE);
    CHECK(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < words; i += kStep) {
      const unsigned expected = static_cast<unsigned>(i) + 8 * round + 1;
      EXPECT(memory[i] == expected, "round %u: word %zu is %u, not %u", round, i, memory[i],
             expected);
    }
  }
  return Pass("latch_beside_much");
}
