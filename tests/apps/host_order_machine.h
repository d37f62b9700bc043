// The memory, the streams and the device's code of host_order.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "check.h"
#include "host_order_model.h"
#include "stream_values.h"

namespace {

constexpr int kStreams = 5;  // two that do not block, two that do, the legacy stream
constexpr int kLegacy = 4;
constexpr int kHosts = 5, kDevices = 3;
constexpr int kPinned = 0, kRegistered = 1, kMiddle = 2, kMapped = 3, kPageable = 4;
constexpr int kSteps = 48;
constexpr unsigned kFlags = 64;

__global__ void SpinUntil(volatile unsigned* flag) {
  while (*flag == 0) {
  }
}

__global__ void Mix(unsigned char* bytes, unsigned count, unsigned char value) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) bytes[i] = bytes[i] * 5 + value;
}

// A part of a buffer: rows of `width` bytes.
struct Piece {
  int buffer;
  size_t offset, width, rows, pitch;

  model::Access Touches(bool writes) const {
    return {buffer, offset, (rows - 1) * pitch + width, writes};
  }
};

struct Fill {
  unsigned char* memory;
  Piece piece;
  unsigned char value;
};

void FillPiece(unsigned char* memory, const Piece& piece, unsigned char value) {
  for (size_t row = 0; row < piece.rows; ++row) {
    unsigned char* bytes = memory + piece.offset + row * piece.pitch;
    for (size_t i = 0; i < piece.width; ++i) bytes[i] = value + i * 7 + row;
  }
}

void CUDART_CB FillOnHost(void* argument) {
  std::unique_ptr<Fill> fill(static_cast<Fill*>(argument));
  FillPiece(fill->memory, fill->piece, fill->value);
}

void CUDART_CB WaitOnHost(void* argument) {
  auto* flag = static_cast<std::atomic<unsigned>*>(argument);
  while (flag->load() == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// Memory and streams, which all programs use.
struct Machine {
  explicit Machine(size_t bytes) : size(bytes) {
    CHECK(cudaMallocHost(&memory[kPinned], size));
    // Two registered ranges that touch each other, and neither begins with a page.
    auto* block = static_cast<unsigned char*>(std::malloc(2 * size + 8192));
    memory[kRegistered] = block + 1000;
    memory[kMiddle] = memory[kRegistered] + size;
    CHECK(cudaHostRegister(memory[kRegistered], size, cudaHostRegisterDefault));
    CHECK(cudaHostRegister(memory[kMiddle], size, cudaHostRegisterDefault));
    CHECK(cudaHostAlloc(&memory[kMapped], size, cudaHostAllocMapped));
    void* device = nullptr;
    CHECK(cudaHostGetDevicePointer(&device, memory[kMapped], 0));
    memory[kPageable] = static_cast<unsigned char*>(std::malloc(size));
    for (int i = 0; i < kDevices; ++i) CHECK(cudaMalloc(&memory[kHosts + i], size));
    CHECK(cudaMalloc(&flags, kFlags * sizeof(unsigned)));
    CHECK(cudaMallocHost(&host_flags, kFlags * sizeof(unsigned)));
    for (int i = 0; i < kLegacy; ++i) {
      CHECK(cudaStreamCreateWithFlags(&streams[i],
                                      i < 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    }
    streams[kLegacy] = cudaStreamLegacy;
    CHECK(cudaStreamCreateWithFlags(&control, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    // Loading a kernel may wait for what is held.
    CHECK(cudaMemset(flags, 1, kFlags * sizeof(unsigned)));
    SpinUntil<<<1, 1>>>(flags);
    Mix<<<1, 1>>>(memory[kHosts], 1, 1);
    CHECK(cudaDeviceSynchronize());
  }

  size_t size;
  unsigned char* memory[kHosts + kDevices];
  unsigned *flags, *host_flags;
  cudaStream_t streams[kStreams], control;
  cudaEvent_t event;
  StreamValues values;
};

}  // namespace
