// A two-way mailbox inside one launch: the program writes messages of 8 bytes to 64 KiB into pinned
// memory, each with a flag behind it; the blocks of a running kernel answer them, and the program
// polls for the answers. No call of CUDA comes in between. Arguments: the number of messages, the
// seconds after which it gives up with exit code 2, and for figures the bytes of each message (0:
// the flag alone is the message) and the number of mailboxes. It says on standard output how many
// microseconds a message took there and back.
#include <optional>

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

}  // namespace

int main(int count, char** arguments) {
  const uint64_t messages = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1000;
  live::Deadline deadline(count > 2 ? std::atof(arguments[2]) : 60);
  if (count > 3) all_bytes = std::strtoull(arguments[3], nullptr, 10);
  const int used = count > 4 ? std::atoi(arguments[4]) : kBoxes;
  EXPECT(all_bytes.value_or(0) <= kPayload && used >= 1 && used <= kBoxes, "arguments");
  auto* boxes = reinterpret_cast<Box*>(live::Words(used * sizeof(Box)));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Serve<<<used, kThreads, 0, stream>>>(boxes, messages);
  CHECK(cudaGetLastError());
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t number = 1; number <= messages; ++number) {
    for (int i = 0; i < used; ++i) Send(boxes[i], i, number);
    for (int i = 0; i < used; ++i) Receive(boxes[i], i, number, deadline);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFreeHost(boxes));
  std::printf("%.2f us a message\n", took.count() / static_cast<double>(messages) / used);
  return Pass("mailbox");
}
