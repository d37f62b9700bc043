// Messages as rows of lines, each of 16 bytes: two words of 8 bytes, and each of them has 4 bytes
// of data and a flag, the message's number. So every word says by itself whether it has come. A
// ring of slots, a head that says how many messages were taken, and, for a program that passes
// messages on, the size of what lies in each slot, -1 where nothing does. As in libraries for
// collectives that have kernels and threads of the program exchange messages in pinned memory.
#pragma once

#include <cstring>

#include "live.h"

namespace lines {

constexpr int kSlots = 8;
constexpr uint32_t kLargest = 64 << 10;        // bytes of data
constexpr uint32_t kSlotBytes = 2 * kLargest;  // with flags
constexpr size_t kPage = 4096;

struct Size {
  int mode, offset;
  int64_t bytes;  // with flags
  void* pointer;
};

// In one piece of memory: lines, head, sizes.
struct Ring {
  uint64_t* lines;
  volatile uint64_t* head;
  volatile Size* sizes;  // null: nobody asks for them

  static constexpr size_t kBytes = kSlots * size_t{kSlotBytes} + 2 * kPage;
  __host__ __device__ static Ring In(void* memory, bool sized) {
    auto* bytes = static_cast<unsigned char*>(memory);
    Ring ring;
    ring.lines = reinterpret_cast<uint64_t*>(bytes);
    ring.head = reinterpret_cast<volatile uint64_t*>(bytes + kSlots * size_t{kSlotBytes});
    auto* sizes = bytes + kSlots * size_t{kSlotBytes} + kPage + 128;
    ring.sizes = sized ? reinterpret_cast<volatile Size*>(sizes) : nullptr;
    return ring;
  }
  __host__ __device__ volatile uint64_t* Slot(uint64_t message) const {
    return lines + message % kSlots * (kSlotBytes / 8);
  }
  // Before anybody uses it.
  void Clear() const {
    std::memset(lines, 0, kSlots * size_t{kSlotBytes});
    *head = 0;
    for (int i = 0; sizes != nullptr && i < kSlots; ++i) sizes[i].bytes = -1;
  }
};

// Mostly small ones.
__host__ __device__ inline uint32_t WordsOf(uint64_t message) {
  const uint32_t bytes = message % 16 == 15 ? kLargest : 8u << message % 11;
  return bytes / 4;
}

// Data and flag; in every other word the flag comes first.
__host__ __device__ inline uint64_t WordOf(uint64_t message, uint32_t place) {
  const uint64_t flag = message + 1;
  const uint64_t data = static_cast<uint32_t>(flag * 2654435761u + place * 40503u);
  return place % 2 == 1 ? flag << 32 | data : data << 32 | flag;
}

__host__ __device__ inline bool HasCome(uint64_t word, uint64_t message, uint32_t place) {
  return (place % 2 == 1 ? word >> 32 : word & 0xffffffffu) == message + 1;
}

__device__ inline void Send(const Ring& ring, uint64_t message, uint64_t* taken) {
  if (threadIdx.x == 0) {
    while (*taken + kSlots < message + 1) *taken = *ring.head;
    if (ring.sizes != nullptr) ring.sizes[message % kSlots].bytes = 8ll * WordsOf(message);
  }
  __syncthreads();
  volatile uint64_t* slot = ring.Slot(message);
  for (uint32_t i = threadIdx.x; i < WordsOf(message); i += blockDim.x) {
    slot[i] = WordOf(message, i);
  }
}

// What did not come as it was sent.
__device__ inline uint32_t Receive(const Ring& ring, uint64_t message) {
  volatile uint64_t* slot = ring.Slot(message);
  uint32_t wrong = 0;
  for (uint32_t i = threadIdx.x; i < WordsOf(message); i += blockDim.x) {
    uint64_t word;
    while (!HasCome(word = slot[i], message, i)) {
    }
    wrong += word != WordOf(message, i);
  }
  __syncthreads();
  if (threadIdx.x == 0) *ring.head = message + 1;
  return wrong;
}

}  // namespace lines
