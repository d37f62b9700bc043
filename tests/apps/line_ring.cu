// One launch that sends messages to the program and one that receives messages from it, as rows of
// lines (lines.h), both at once. The program is what a library's thread is that passes messages on
// to other hosts: it waits for a message's size and flags, says that the slot is empty again and
// only then that the message was taken. Arguments: the seconds after which it gives up with exit
// code 2, and how many messages go each way; then nothing, "borders" for launches in another stream
// meanwhile, or "beside" for much more memory that kernels reach.
#include <atomic>
#include <thread>

#include "lines.h"

namespace {

using lines::Ring;

constexpr size_t kBeside = 24 << 20;

__global__ void SendAll(void* memory, uint64_t messages) {
  const Ring ring = Ring::In(memory, true);
  uint64_t taken = 0;
  for (uint64_t message = 0; message < messages; ++message) lines::Send(ring, message, &taken);
}

__global__ void ReceiveAll(void* memory, uint64_t messages, uint32_t* wrong) {
  const Ring ring = Ring::In(memory, true);
  for (uint64_t message = 0; message < messages; ++message) {
    atomicAdd(wrong, lines::Receive(ring, message));
  }
}

// Takes what the kernel sends.
void Take(const Ring& ring, uint64_t messages, double seconds) {
  live::Deadline deadline(seconds);
  for (uint64_t message = 0; message < messages; ++message) {
    volatile lines::Size& size = ring.sizes[message % lines::kSlots];
    while (size.bytes == -1) deadline.Check("the size of message", message);
    const uint32_t words = lines::WordsOf(message);
    EXPECT(size.bytes == 8ll * words, "message %llu: %lld bytes, not %u",
           static_cast<unsigned long long>(message), static_cast<long long>(size.bytes), 8 * words);
    volatile uint64_t* slot = ring.Slot(message);
    for (uint32_t i = 0; i < words; ++i) {
      uint64_t word;
      while (!lines::HasCome(word = slot[i], message, i)) {
        deadline.Check("lines of message", message);
      }
      EXPECT(word == lines::WordOf(message, i), "message %llu, word %u: %llx",
             static_cast<unsigned long long>(message), i, static_cast<unsigned long long>(word));
    }
    size.bytes = -1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *ring.head = message + 1;
  }
}

// Gives the kernel what it receives.
void Give(const Ring& ring, uint64_t messages, double seconds) {
  live::Deadline deadline(seconds);
  // The launches' own comparison is over when the first message comes from the network.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (uint64_t message = 0; message < messages; ++message) {
    while (*ring.head + lines::kSlots < message + 1) deadline.Check("a slot for message", message);
    volatile uint64_t* slot = ring.Slot(message);
    for (uint32_t i = 0; i < lines::WordsOf(message); ++i) slot[i] = lines::WordOf(message, i);
  }
  while (*ring.head != messages) deadline.Check("the end of message", messages);
}

__global__ void Nothing() {}

// Launches and waits in another stream, as a program has that computes meanwhile.
void Compute(const std::atomic<bool>& stop) {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  while (!stop) {
    Nothing<<<1, 1, 0, stream>>>();
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
  }
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count > 2, "arguments");
  const double seconds = std::atof(arguments[1]);
  const auto messages = static_cast<uint64_t>(std::atoll(arguments[2]));
  uint64_t* memory[2] = {live::Words(Ring::kBytes), live::Words(Ring::kBytes)};
  void* device[2];
  cudaStream_t streams[2];
  for (int i : {0, 1}) {
    Ring::In(memory[i], true).Clear();
    CHECK(cudaHostGetDevicePointer(&device[i], memory[i], 0));
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  if (count > 3 && std::strcmp(arguments[3], "beside") == 0) {
    uint64_t *beside = live::Words(kBeside), *address = nullptr;
    CHECK(cudaHostGetDevicePointer(&address, beside, 0));
  }
  uint32_t *wrong = nullptr, found = 0;
  CHECK(cudaMalloc(&wrong, sizeof *wrong));
  CHECK(cudaMemset(wrong, 0, sizeof *wrong));
  SendAll<<<1, 128, 0, streams[0]>>>(device[0], messages);
  ReceiveAll<<<1, 128, 0, streams[1]>>>(device[1], messages, wrong);
  CHECK(cudaGetLastError());
  std::puts("READY");
  std::fflush(stdout);
  std::atomic<bool> stop{false};
  std::thread computer;
  const char* how = count > 3 ? arguments[3] : "";
  if (std::strcmp(how, "borders") == 0) computer = std::thread([&] { Compute(stop); });
  std::thread taker(Take, Ring::In(memory[0], true), messages, seconds);
  Give(Ring::In(memory[1], true), messages, seconds);
  taker.join();
  stop = true;
  if (computer.joinable()) computer.join();
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDefault));
  EXPECT(found == 0, "%u words came otherwise than they were sent", found);
  return Pass("line_ring");
}
