// Messages in pinned memory beside calls that exchange it. `down`: a kernel writes a message and a
// flag behind it and ends; the program waits for it, and a thread of the program looks at the flag
// meanwhile. `up`: a kernel looks at a flag that a thread of the program writes behind a message,
// while the program launches other kernels and waits for them. `both`: the same, with an answer of
// as many words. `load`: the same, but each kernel is of a library that is loaded for it. Whoever
// sees the flag must see the message. Arguments: one of these, rounds, bytes of a message, the
// seconds after which it gives up with exit code 2. It prints how many messages were seen in part;
// then the exit code is 3.
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "live.h"

namespace {

constexpr int kThreads = 128;

// Flags on both sides of a message, so that one of them is exchanged before it if that is done in
// the order of addresses.
struct Message {
  uint64_t* before;
  uint64_t* words;
  uint64_t* behind;
  uint64_t count;
};

__device__ void Send(const Message& message, uint64_t round) {
  volatile uint64_t* words = message.words;
  for (uint64_t i = threadIdx.x; i < message.count; i += blockDim.x) words[i] = round + i;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0) return;
  *static_cast<volatile uint64_t*>(round % 2 != 0 ? message.before : message.behind) = round;
}

__global__ void SendOne(Message message, uint64_t round) { Send(message, round); }

__global__ void Serve(Message up, Message down, uint64_t rounds, unsigned long long* wrong) {
  for (uint64_t round = 1; round <= rounds; ++round) {
    const volatile uint64_t* flag = round % 2 != 0 ? up.before : up.behind;
    if (threadIdx.x == 0) {
      while (*flag != round) {
      }
      __threadfence_system();
    }
    __syncthreads();
    const volatile uint64_t* words = up.words;
    for (uint64_t i = threadIdx.x; i < up.count; i += blockDim.x) {
      if (words[i] != round + i) atomicAdd(wrong, 1);
    }
    __syncthreads();
    Send(down, round);
    __syncthreads();
  }
}

__global__ void Add(int* sum) { *sum += 1; }

// The same in a library of its own.
constexpr const char* kLibrary = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .entry AddToo(.param .u64 sum) {
  .reg .b64 %a;
  .reg .b32 %v;
  ld.param.u64 %a, [sum];
  ld.global.u32 %v, [%a];
  add.u32 %v, %v, 1;
  st.global.u32 [%a], %v;
  ret;
}
)";

void LaunchLoaded(int* sum, cudaStream_t stream) {
  cudaLibrary_t library;
  cudaKernel_t kernel;
  CHECK(cudaLibraryLoadData(&library, kLibrary, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cudaLibraryGetKernel(&kernel, library, "AddToo"));
  void* parameters[] = {&sum};
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), 1, 1, parameters, 0, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaLibraryUnload(library));
}

void Write(const Message& message, uint64_t round) {
  for (uint64_t i = 0; i < message.count; ++i) {
    __atomic_store_n(message.words + i, round + i, __ATOMIC_RELAXED);
  }
  live::Store(round % 2 != 0 ? message.before : message.behind, round);
}

bool HasCome(const Message& message, uint64_t round) {
  return live::Load(round % 2 != 0 ? message.before : message.behind) == round;
}

// Whether the message is there as a whole.
bool IsWhole(const Message& message, uint64_t round) {
  for (uint64_t i = 0; i < message.count; ++i) {
    if (__atomic_load_n(message.words + i, __ATOMIC_RELAXED) != round + i) return false;
  }
  return true;
}

uint64_t* Exposed(size_t bytes) {
  uint64_t* words = live::Words(bytes);
  void* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, words, 0));
  EXPECT(device == words, "pinned memory has another address on the device");
  return words;
}

Message NewMessage(uint64_t words) {
  Message message{Exposed(sizeof(uint64_t)), Exposed(words * sizeof(uint64_t)),
                  Exposed(sizeof(uint64_t)), words};
  // Places in memory do not follow the order of allocations.
  if (message.before > message.behind) std::swap(message.before, message.behind);
  return message;
}

cudaStream_t NewStream() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

uint64_t Down(uint64_t rounds, uint64_t words, double seconds) {
  const Message message = NewMessage(words);
  cudaStream_t stream = NewStream();
  std::atomic<uint64_t> seen{0};
  uint64_t torn = 0;
  std::thread watcher([&] {
    live::Deadline deadline(seconds);
    for (uint64_t round = 1; round <= rounds; ++round) {
      while (!HasCome(message, round)) deadline.Check("message", round);
      torn += IsWhole(message, round) ? 0 : 1;
      seen = round;
    }
  });
  for (uint64_t round = 1; round <= rounds; ++round) {
    SendOne<<<1, kThreads, 0, stream>>>(message, round);
    CHECK(cudaStreamSynchronize(stream));
    while (seen != round) std::this_thread::yield();
  }
  watcher.join();
  return torn;
}

uint64_t Up(uint64_t rounds, uint64_t words, uint64_t answer_words, bool loads, double seconds) {
  const Message up = NewMessage(words), down = NewMessage(answer_words);
  unsigned long long* wrong = nullptr;
  int* sum = nullptr;
  CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
  CHECK(cudaMalloc(&sum, sizeof(*sum)));
  CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
  cudaStream_t serving = NewStream(), beside = NewStream();
  Add<<<1, 1, 0, beside>>>(sum);  // it is loaded before
  CHECK(cudaStreamSynchronize(beside));
  Serve<<<1, kThreads, 0, serving>>>(up, down, rounds, wrong);
  CHECK(cudaGetLastError());
  std::atomic<uint64_t> answered{0};
  uint64_t torn = 0;
  std::thread writer([&] {
    live::Deadline deadline(seconds);
    for (uint64_t round = 1; round <= rounds; ++round) {
      Write(up, round);
      while (!HasCome(down, round)) deadline.Check("answer", round);
      torn += IsWhole(down, round) ? 0 : 1;
      answered = round;
    }
  });
  // The first message comes while nothing else is called.
  while (answered == 0) std::this_thread::yield();
  uint64_t launched = 0;
  for (; answered != rounds; ++launched) {
    if (loads) {
      LaunchLoaded(sum, beside);
      continue;
    }
    Add<<<1, 1, 0, beside>>>(sum);
    CHECK(cudaStreamSynchronize(beside));
  }
  writer.join();
  CHECK(cudaDeviceSynchronize());
  unsigned long long wrong_words = 0;
  CHECK(cudaMemcpy(&wrong_words, wrong, sizeof(wrong_words), cudaMemcpyDeviceToHost));
  int added = 0;
  CHECK(cudaMemcpy(&added, sum, sizeof(added), cudaMemcpyDeviceToHost));
  EXPECT(static_cast<uint64_t>(added) == launched + 1, "%d launches were made, not %llu", added,
         static_cast<unsigned long long>(launched + 1));
  std::printf("%llu words were old for the kernel, beside %llu launches\n", wrong_words,
              static_cast<unsigned long long>(launched));
  return torn + wrong_words;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "down";
  const uint64_t rounds = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 100;
  const uint64_t words = (count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1 << 20) / 8;
  const double seconds = count > 4 ? std::atof(arguments[4]) : 60;
  EXPECT((what == "down" || what == "up" || what == "both" || what == "load") && rounds >= 1 &&
             words >= 1,
         "arguments");
  const uint64_t torn = what == "down"
                            ? Down(rounds, words, seconds)
                            : Up(rounds, words, what == "up" ? 1 : words, what == "load", seconds);
  std::printf("%llu messages were seen in part\n", static_cast<unsigned long long>(torn));
  if (torn != 0) return 3;
  return Pass("border_litmus");
}
