// A two-way mailbox inside one launch: the program writes messages of 8 bytes to 64 KiB into pinned
// memory, each with a flag behind it; the blocks of a running kernel answer them, and the program
// polls for the answers. No call of CUDA comes in between. Arguments: the number of messages, the
// seconds after which it gives up with exit code 2, and for figures the bytes of each message (0:
// the flag alone is the message; -: they differ) and the number of mailboxes; then the memory:
// `allocated`, `registered` or `managed`. It says on standard output how many microseconds a
// message took there and back.
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>

#include "live.h"

namespace {

constexpr int kBoxes = 3;  // a block for each
constexpr int kThreads = 64;
constexpr size_t kPayload = size_t{64} << 10;  // bytes
constexpr size_t kSizes[] = {8, 64, 512, 4096, kPayload};
constexpr int kWords = kPayload / sizeof(uint64_t);

struct Box {
  uint64_t request;  // number of the newest message
  uint64_t words;    // its length
  uint64_t padding[6];
  uint64_t answer;  // number of the newest answer
  uint64_t padding_too[7];
  uint64_t in[kWords];
  uint64_t out[kWords];
};

__device__ __host__ uint64_t Answer(uint64_t word, uint64_t number, uint64_t at) {
  return word * 3 + number * 5 + at;
}

__global__ void Serve(volatile Box* boxes, uint64_t messages) {
  volatile Box& box = boxes[blockIdx.x];
  for (uint64_t number = 1; number <= messages; ++number) {
    if (threadIdx.x == 0) {
      while (box.request < number) {
      }
      __threadfence_system();
    }
    __syncthreads();
    const uint64_t words = box.words;
    for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) {
      box.out[i] = Answer(box.in[i], number, i);
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) box.answer = number;
  }
}

uint64_t Word(uint64_t number, int box, uint64_t at) {
  return number * 1000003 + static_cast<uint64_t>(box) * 7919 + at;
}

std::optional<size_t> all_bytes;  // of each message; without a value they differ

uint64_t WordsOf(uint64_t number) {
  const size_t bytes = all_bytes.value_or(kSizes[number % (sizeof(kSizes) / sizeof(*kSizes))]);
  return bytes / sizeof(uint64_t);
}

void Send(Box& box, int index, uint64_t number) {
  box.words = WordsOf(number);
  for (uint64_t i = 0; i < box.words; ++i) box.in[i] = Word(number, index, i);
  live::Store(&box.request, number);
}

void Receive(Box& box, int index, uint64_t number, live::Deadline& deadline) {
  while (live::Load(&box.answer) != number) deadline.Check("message", number);
  const uint64_t words = WordsOf(number);
  for (uint64_t i = 0; i < words; ++i) {
    const uint64_t expected = Answer(Word(number, index, i), number, i);
    EXPECT(box.out[i] == expected, "message %llu of box %d: word %llu is %llu, not %llu",
           static_cast<unsigned long long>(number), index, static_cast<unsigned long long>(i),
           static_cast<unsigned long long>(box.out[i]), static_cast<unsigned long long>(expected));
  }
}

// The mailboxes, and where kernels have them. Managed ones lie beside pinned memory that kernels
// reach, of which there is none otherwise.
Box* Boxes(int used, const std::string& memory, Box** on_device) {
  // Of flags alone the last box has nothing else: kernels reach no more than is needed.
  const size_t last = all_bytes == 0 ? offsetof(Box, in) : sizeof(Box);
  const size_t bytes = (used - 1) * sizeof(Box) + last;
  void *boxes = nullptr, *device = nullptr;
  if (memory == "managed") {
    CHECK(cudaMallocManaged(&boxes, bytes));
    CHECK(cudaHostGetDevicePointer(&device, live::Words(sizeof(uint64_t)), 0));
    device = boxes;
  } else if (memory == "registered") {
    boxes = aligned_alloc(64, bytes);  // shares pages with what else malloc gives
    CHECK(cudaHostRegister(boxes, bytes, cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&device, boxes, 0));
  } else {
    EXPECT(memory == "allocated", "arguments");
    device = boxes = live::Words(bytes);
  }
  std::memset(boxes, 0, bytes);
  *on_device = static_cast<Box*>(device);
  return static_cast<Box*>(boxes);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t messages = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1000;
  live::Deadline deadline(count > 2 ? std::atof(arguments[2]) : 60);
  if (count > 3 && arguments[3][0] != '-') all_bytes = std::strtoull(arguments[3], nullptr, 10);
  const int used = count > 4 ? std::atoi(arguments[4]) : kBoxes;
  EXPECT(all_bytes.value_or(0) <= kPayload && used >= 1 && used <= kBoxes, "arguments");
  Box* on_device = nullptr;
  Box* boxes = Boxes(used, count > 5 ? arguments[5] : "allocated", &on_device);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Serve<<<used, kThreads, 0, stream>>>(on_device, messages);
  CHECK(cudaGetLastError());
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t number = 1; number <= messages; ++number) {
    for (int i = 0; i < used; ++i) Send(boxes[i], i, number);
    for (int i = 0; i < used; ++i) Receive(boxes[i], i, number, deadline);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  CHECK(cudaStreamSynchronize(stream));
  std::printf("%.2f us a message\n", took.count() / static_cast<double>(messages) / used);
  return Pass("mailbox");
}
