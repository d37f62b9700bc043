// What NCCL does over sockets, in shape: channels with a pinned buffer of 4 MiB for each direction,
// beside many small ranges. Blocks of a running kernel write chunks into a buffer's slots, each
// with a tail behind it; a thread of the program checks every byte, passes the chunk on to the
// channel's other buffer with a tail of its own, and returns a head. Other blocks check what has
// come there. No call of CUDA comes in between. Arguments: channels, chunks of each, their bytes,
// the seconds after which it gives up with exit code 2; then `down`, and nothing is passed on, or
// `awaited`: as PyTorch does, the legacy stream waits for the kernel, and the program for the
// device, while a thread of it passes chunks on. It prints how many words were wrong; then the exit
// code is 3.
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "live.h"

namespace {

constexpr int kMaxChannels = 64;
constexpr int kThreads = 128;
constexpr uint64_t kSlots = 8;
constexpr uint64_t kSlotBytes = uint64_t{512} << 10;
constexpr int kOthers = 100;  // small ranges that nobody uses

// A direction of a channel: each of them a range of its own.
struct Queue {
  uint64_t* data;  // kSlots slots
  uint64_t* tail;  // chunks that were written
  uint64_t* head;  // chunks that were read
};
struct Channel {
  Queue down, up;
};

__device__ __host__ uint64_t Word(uint64_t channel, uint64_t chunk, uint64_t at) {
  return chunk * 1000003 + channel * 7919 + at;
}

__device__ uint64_t* Slot(const Queue& queue, uint64_t chunk) {
  return queue.data + chunk % kSlots * (kSlotBytes / sizeof(uint64_t));
}

__device__ void AwaitAtLeast(const uint64_t* word, uint64_t value) {
  if (threadIdx.x == 0) {
    while (*static_cast<const volatile uint64_t*>(word) < value) {
    }
    __threadfence_system();
  }
  __syncthreads();
}

__device__ void Publish(uint64_t* word, uint64_t value) {
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *static_cast<volatile uint64_t*>(word) = value;
  __syncthreads();
}

__device__ void WriteChunks(const Queue& queue, uint64_t channel, uint64_t chunks, uint64_t words) {
  for (uint64_t chunk = 1; chunk <= chunks; ++chunk) {
    if (chunk > kSlots) AwaitAtLeast(queue.head, chunk - kSlots);
    volatile uint64_t* slot = Slot(queue, chunk);
    for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) slot[i] = Word(channel, chunk, i);
    Publish(queue.tail, chunk);
  }
}

__device__ void ReadChunks(const Queue& queue, uint64_t channel, uint64_t chunks, uint64_t words,
                           unsigned long long* wrong) {
  for (uint64_t chunk = 1; chunk <= chunks; ++chunk) {
    AwaitAtLeast(queue.tail, chunk);
    const volatile uint64_t* slot = Slot(queue, chunk);
    for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) {
      if (slot[i] != Word(channel, chunk, i)) atomicAdd(wrong, 1);
    }
    Publish(queue.head, chunk);
  }
}

// The first half of the blocks writes, the other one reads.
__global__ void Serve(const Channel* channels, unsigned count, uint64_t chunks, uint64_t words,
                      unsigned long long* wrong) {
  const unsigned channel = blockIdx.x % count;
  if (blockIdx.x < count) {
    WriteChunks(channels[channel].down, channel, chunks, words);
  } else {
    ReadChunks(channels[channel].up, channel, chunks, words, wrong);
  }
}

Queue NewQueue() {
  return {live::Words(kSlots * kSlotBytes), live::Words(sizeof(uint64_t)),
          live::Words(sizeof(uint64_t))};
}

// As kernels have it, which also makes it one that they reach.
uint64_t* OnDevice(uint64_t* memory) {
  void* device = nullptr;
  CHECK(cudaHostGetDevicePointer(&device, memory, 0));
  return static_cast<uint64_t*>(device);
}

Queue OnDevice(const Queue& queue) {
  return {OnDevice(queue.data), OnDevice(queue.tail), OnDevice(queue.head)};
}

struct Terms {
  int channels = 16;
  uint64_t chunks = 20;
  uint64_t words = kSlotBytes / sizeof(uint64_t);
  double seconds = 60;
  bool down_only = false, awaited = false;
};

// The program's side of a channel. Returns how many words were wrong.
class Proxy {
 public:
  Proxy(const Channel& channel, uint64_t number, const Terms& terms)
      : channel_(channel), number_(number), terms_(terms) {}

  // True if there was something to do.
  bool Step() {
    if (done() || live::Load(channel_.down.tail) <= passed_) return false;
    const uint64_t chunk = passed_ + 1;
    if (!terms_.down_only && chunk > kSlots && live::Load(channel_.up.head) < chunk - kSlots) {
      return false;
    }
    const uint64_t place = chunk % kSlots * (kSlotBytes / sizeof(uint64_t));
    uint64_t* from = channel_.down.data + place;
    uint64_t* to = channel_.up.data + place;
    for (uint64_t i = terms_.words; i-- > 0;) {
      const uint64_t word = __atomic_load_n(from + i, __ATOMIC_RELAXED);
      wrong_ += word != Word(number_, chunk, i);
      if (!terms_.down_only) __atomic_store_n(to + i, Word(number_, chunk, i), __ATOMIC_RELAXED);
    }
    if (!terms_.down_only) live::Store(channel_.up.tail, chunk);
    live::Store(channel_.down.head, chunk);
    passed_ = chunk;
    return true;
  }
  bool done() const { return passed_ == terms_.chunks; }
  uint64_t wrong() const { return wrong_; }

 private:
  const Channel channel_;
  const uint64_t number_;
  const Terms terms_;
  uint64_t passed_ = 0, wrong_ = 0;
};

uint64_t PassOn(std::vector<Proxy>& proxies, double seconds) {
  live::Deadline deadline(seconds);
  uint64_t wrong = 0, passed = 0;
  for (bool all = false; !all;) {
    all = true;
    for (Proxy& proxy : proxies) {
      passed += proxy.Step() ? 1 : 0;
      all = all && proxy.done();
    }
    deadline.Check("chunk", passed);
  }
  for (const Proxy& proxy : proxies) wrong += proxy.wrong();
  return wrong;
}

void AwaitAll(cudaStream_t stream) {
  cudaEvent_t end;
  CHECK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaStreamWaitEvent(cudaStreamLegacy, end, 0));
  CHECK(cudaDeviceSynchronize());
}

Terms TermsOf(int count, char** arguments) {
  Terms terms;
  if (count > 1) terms.channels = std::atoi(arguments[1]);
  if (count > 2) terms.chunks = std::strtoull(arguments[2], nullptr, 10);
  if (count > 3) terms.words = std::strtoull(arguments[3], nullptr, 10) / sizeof(uint64_t);
  if (count > 4) terms.seconds = std::atof(arguments[4]);
  if (count > 5) terms.down_only = std::string(arguments[5]) == "down";
  if (count > 5) terms.awaited = std::string(arguments[5]) == "awaited";
  EXPECT(terms.channels >= 1 && terms.channels <= kMaxChannels && terms.words >= 1 &&
             terms.words * sizeof(uint64_t) <= kSlotBytes,
         "arguments");
  return terms;
}

}  // namespace

int main(int count, char** arguments) {
  const Terms terms = TermsOf(count, arguments);
  std::vector<Channel> channels, on_device;
  for (int i = 0; i < kOthers; ++i) OnDevice(live::Words(sizeof(uint64_t)));
  for (int i = 0; i < terms.channels; ++i) {
    channels.push_back({NewQueue(), terms.down_only ? Queue{} : NewQueue()});
    const Channel& channel = channels.back();
    on_device.push_back({OnDevice(channel.down), terms.down_only ? Queue{} : OnDevice(channel.up)});
  }
  Channel* table = nullptr;
  unsigned long long* wrong = nullptr;
  CHECK(cudaMalloc(&table, on_device.size() * sizeof(Channel)));
  CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
  CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
  CHECK(cudaMemcpy(table, on_device.data(), on_device.size() * sizeof(Channel),
                   cudaMemcpyHostToDevice));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const int blocks = terms.channels * (terms.down_only ? 1 : 2);
  Serve<<<blocks, kThreads, 0, stream>>>(table, static_cast<unsigned>(terms.channels), terms.chunks,
                                         terms.words, wrong);
  CHECK(cudaGetLastError());
  std::vector<Proxy> proxies;
  for (int i = 0; i < terms.channels; ++i) {
    proxies.emplace_back(channels[i], static_cast<uint64_t>(i), terms);
  }
  const auto start = std::chrono::steady_clock::now();
  uint64_t wrong_here = 0;
  std::thread proxy([&] { wrong_here = PassOn(proxies, terms.seconds); });
  if (terms.awaited) AwaitAll(stream);
  proxy.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  live::Deadline deadline(terms.seconds);
  for (uint64_t asked = 0; cudaStreamQuery(stream) == cudaErrorNotReady; ++asked) {
    deadline.Check("the kernel's end", asked);
  }
  CHECK(cudaStreamSynchronize(stream));
  unsigned long long wrong_there = 0;
  CHECK(cudaMemcpy(&wrong_there, wrong, sizeof(wrong_there), cudaMemcpyDeviceToHost));
  std::printf("%.1f ms, wrong words: %llu of the program, %llu of the kernel\n", took.count(),
              static_cast<unsigned long long>(wrong_here), wrong_there);
  if (wrong_here + wrong_there != 0) return 3;
  return Pass("channels");
}
