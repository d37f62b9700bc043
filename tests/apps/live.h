// For programs whose running kernels and host code look at the same pinned memory: time runs out
// where one side waits for what the other one's memory never shows.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "check.h"

namespace live {

inline uint64_t Load(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void Store(uint64_t* word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Pinned memory of zeros.
inline uint64_t* Words(size_t bytes) {
  void* memory = nullptr;
  CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  std::memset(memory, 0, bytes);
  return static_cast<uint64_t*>(memory);
}

// Ends the program with exit code 2 and a line when the time is over: a kernel that waits for ever
// lets no call of the runtime return.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}

  // To be called while waiting. `what` and `number` are for people.
  void Check(const char* what, uint64_t number) {
    if (++polls_ % 64 != 0) return;
    std::this_thread::yield();
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start_;
    if (waited.count() < seconds_) return;
    std::printf("STANDS STILL at %s %llu\n", what, static_cast<unsigned long long>(number));
    std::fflush(stdout);
    std::_Exit(2);
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const double seconds_;
  unsigned polls_ = 0;
};

}  // namespace live
