// The first page of a ring's shared memory. Each cursor has a cache line of its own, so that
// producer and consumer do not take turns owning one line.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/memory_sizes.h"

namespace longwire::wire {

struct RingControl {
  static constexpr uint64_t kMagic = 0x31676e6952574cULL;  // "LWRing1"

  uint64_t magic;
  uint64_t bytes;                // data bytes
  std::atomic<uint32_t> closed;  // 0 open, else 1 + the close code
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> released;
  // The consumer sleeps on `data_bell`, the producer on `space_bell`; `…_sleeping` says whether a
  // wake is worth a system call; `…_pokes` counts wakes without data.
  alignas(64) std::atomic<uint32_t> data_bell;
  std::atomic<uint32_t> consumer_sleeping;
  std::atomic<uint32_t> consumer_pokes;
  alignas(64) std::atomic<uint32_t> space_bell;
  std::atomic<uint32_t> producer_sleeping;
  std::atomic<uint32_t> rests;  // how often the producer has told the consumer that both rest
};
static_assert(sizeof(RingControl) <= base::kPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace longwire::wire
