// The kernels of live_litmus, and what they share with the program.
#pragma once

#include "live.h"

namespace litmus {

constexpr int kFlags = 4;
constexpr int kThreads = 64;
constexpr uint64_t kOver = UINT64_MAX;  // no batch comes after this
constexpr uint64_t kPayloadBytes = uint64_t{1} << 20;

// One writer and its readers. The writer begins a round by writing the round's number into every
// word of the payload, and then into one flag after the other. Whoever has seen a round in the last
// flag sees no older one in what was written before it.
struct Box {
  uint64_t flags[kFlags][8];  // a cache line for each
  uint64_t stop;
  uint64_t padding[7];
  uint64_t payload[kPayloadBytes / sizeof(uint64_t)];
};

// What readers have seen.
struct Seen {
  uint64_t checks;     // of which each had a round that the reader had not seen before
  uint64_t forbidden;  // outcomes
};

struct Shape {
  uint64_t words;   // of the payload
  bool flag_first;  // the writer does it the wrong way round, which the readers must notice
};

// The kernel's side of message passing from the program: each thread checks until it has made
// `checks` of them, or is stopped.
__global__ void Read(volatile Box* boxes, int count, Shape shape, uint64_t checks, Seen* seen) {
  volatile Box& box = boxes[blockIdx.x % count];
  uint64_t last = 0, forbidden = 0, done = 0;
  while (done < checks && box.stop == 0) {
    uint64_t round = box.flags[kFlags - 1][0];
    if (round == last) continue;
    last = round;
    for (int i = kFlags - 2; i >= 0; --i) {
      __threadfence_system();
      const uint64_t earlier = box.flags[i][0];
      forbidden += earlier < round;
      round = earlier > round ? earlier : round;
    }
    __threadfence_system();
    for (uint64_t i = threadIdx.x % shape.words; i < shape.words; i += blockDim.x) {
      forbidden += box.payload[shape.words - 1 - i] < round;
    }
    ++done;
  }
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  seen[at] = {done, forbidden};
}

// The kernel's side of message passing to the program: each block writes rounds into its box until
// it is stopped.
__global__ void Write(volatile Box* boxes, Shape shape) {
  volatile Box& box = boxes[blockIdx.x];
  __shared__ bool stop;
  for (uint64_t round = 1;; ++round) {
    if (threadIdx.x == 0) stop = box.stop != 0;
    __syncthreads();
    if (stop) return;
    if (shape.flag_first) {
      if (threadIdx.x < kFlags) box.flags[threadIdx.x][0] = round;
      __threadfence_system();
      __syncthreads();
    }
    for (uint64_t i = threadIdx.x; i < shape.words; i += blockDim.x) box.payload[i] = round;
    __threadfence_system();
    __syncthreads();
    for (int i = 0; threadIdx.x == 0 && i < kFlags; ++i) {
      box.flags[i][0] = round;
      __threadfence_system();
    }
  }
}

// The kernel's side of store buffering: in each slot of a batch it writes its word and reads the
// program's. A thread takes every so manieth slot.
__global__ void Buffer(volatile uint64_t* begin, volatile uint64_t* end, uint64_t batches,
                       uint64_t slots, volatile uint32_t* mine, volatile uint32_t* other,
                       uint32_t* read) {
  __shared__ uint64_t begun;
  for (uint64_t batch = 1; batch <= batches; ++batch) {
    if (threadIdx.x == 0) {
      while ((begun = *begin) < batch) {
      }
      __threadfence_system();
    }
    __syncthreads();
    if (begun == kOver) return;
    for (uint64_t i = threadIdx.x; i < slots; i += blockDim.x) {
      mine[i] = static_cast<uint32_t>(batch);
      __threadfence_system();
      read[i] = other[i];
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) *end = batch;
  }
}

}  // namespace litmus
