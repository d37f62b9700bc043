// The calls of a stream that wait to be issued. The queue's slots are used again, with the memory
// of their arguments: a launch would call the allocator three times otherwise.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "longwire/call_ids.h"

namespace longwire::worker {

// One record of the log that waits in a stream's queue or runs on a helper.
struct QueuedCall {
  uint64_t position = 0;
  CallId call{};
  uint16_t flags = 0;
  uint32_t thread = 0;
  uint32_t context = 0;
  uint64_t stream = 0;
  std::vector<std::byte> arguments;

  // The progress of a call that is issued in steps (copies: bytes; others: a meaning of their own).
  uint64_t progress = 0;
  uint64_t step = 0;

  bool begun() const { return progress != 0 || step != 0; }
};

class CallQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  QueuedCall& operator[](size_t index) { return places_[At(index)]; }
  const QueuedCall& operator[](size_t index) const { return places_[At(index)]; }
  QueuedCall& front() { return (*this)[0]; }
  const QueuedCall& front() const { return (*this)[0]; }

  // Moves the call into the queue. `call` then has the memory of an earlier call, to be reused.
  void Push(QueuedCall& call) {
    if (size_ == places_.size()) Grow();
    std::swap((*this)[size_++], call);
  }

  void Pop() {
    // The places of a long queue keep none: together they would hold more than the calls in it.
    bool keeps = places_.size() <= kKeptPlaces && front().arguments.capacity() <= kKeptBytes;
    if (!keeps) front().arguments = std::vector<std::byte>();
    ++first_;
    if (--size_ == 0 && places_.size() > kKeptPlaces) places_ = std::vector<QueuedCall>();
  }

 private:
  static constexpr size_t kFirstPlaces = 64;
  static constexpr size_t kKeptPlaces = 1024;
  static constexpr size_t kKeptBytes = 512;

  size_t At(size_t index) const { return (first_ + index) & (places_.size() - 1); }

  void Grow() {
    std::vector<QueuedCall> larger(std::max(2 * places_.size(), kFirstPlaces));
    for (size_t i = 0; i < size_; ++i) std::swap(larger[i], (*this)[i]);
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<QueuedCall> places_;  // a power of two, or none
  size_t first_ = 0;                // place, counted on and on
  size_t size_ = 0;
};

}  // namespace longwire::worker
