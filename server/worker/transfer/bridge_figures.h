// Where pieces of copies between servers spend their time: sums of one session, for the program's
// summary (lwBridgeFigures). So a slow bridge shows which stage the others wait for. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace longwire::worker {

class BridgeFigures {
 public:
  using Clock = std::chrono::steady_clock;

  // In the order in which a piece passes them.
  enum Stage {
    // At the sending server.
    kBlock,  // the copy waited: all blocks that it may have were under way
    kRead,   // from the copy's issue until the device was seen to have written the block
    kQueue,  // until a lane's thread took it
    kIdle,   // a lane's thread waited for a block, between two
    kRoom,   // the lane's ring had no room
    kFill,   // copied into the ring
    // At the receiving server.
    kDry,    // a lane's thread waited for bytes, between two pieces
    kPlace,  // a piece waited in the ring for its copy or for pinned memory
    kStore,  // copied out of the ring
    kIssue,  // until the log thread gave it to the device
    kWrite,  // until the device was seen to have read it
    kStages
  };

  void Add(Stage stage, Clock::duration time) {
    stages_[stage].fetch_add(
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()),
        std::memory_order_relaxed);
  }
  // The same for a wait between two pieces; a longer one was between two copies.
  void AddPause(Stage stage, Clock::duration time) {
    if (time < kBetweenCopies) Add(stage, time);
  }
  // The copy waits for a block (kBlock), and has one. Log thread only.
  void Waits() {
    if (waits_at_ == Clock::time_point{}) waits_at_ = Clock::now();
  }
  void GoesOn() {
    if (waits_at_ != Clock::time_point{}) Add(kBlock, Clock::now() - waits_at_);
    waits_at_ = {};
  }
  void Sent(size_t bytes) { Count(sent_, sent_bytes_, bytes); }
  void Received(size_t bytes) { Count(received_, received_bytes_, bytes); }
  // A received piece went to ordinary memory: the log thread copies it once more.
  void TookOrdinaryMemory() { ordinary_.fetch_add(1, std::memory_order_relaxed); }

  uint64_t sent() const { return sent_.load(); }
  uint64_t received() const { return received_.load(); }
  uint64_t ordinary() const { return ordinary_.load(); }
  // Empty if nothing was sent or received.
  std::string Sentence() const;

 private:
  static constexpr std::chrono::milliseconds kBetweenCopies{10};
  using Number = std::atomic<uint64_t>;

  static void Count(Number& pieces, Number& sum, size_t bytes) {
    pieces.fetch_add(1, std::memory_order_relaxed);
    sum.fetch_add(bytes, std::memory_order_relaxed);
  }

  std::array<Number, kStages> stages_{};  // nanoseconds
  Number sent_{0}, received_{0}, ordinary_{0};
  Clock::time_point waits_at_{};
  Number sent_bytes_{0}, received_bytes_{0};
};

}  // namespace longwire::worker
