// One direction of a session between two processes: a byte log in shared memory. Positions count
// bytes from the session's start and never wrap; the memory holds the bytes from `released` to
// `written`. The producer keeps bytes until the consumer's end releases them, which happens only
// when the far end has acknowledged them: the ring is also the retention buffer of a resume.
//
// The data pages are mapped twice in a row, so that every unreleased range is contiguous in memory.
//
// The other process is not trusted: cursors read from shared memory are checked against the ring's
// size, and a bad one closes the ring. Only one thread at a time may use a producer or a consumer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "wire/result.h"

namespace longwire::wire {

struct RingControl;  // the page in shared memory, see ring.cc

// The shared memory of one ring, mapped into this process.
class RingMemory {
 public:
  // A new sealed memory file of `bytes` data bytes (a power of two, at least 64 KiB), or nullptr.
  static std::shared_ptr<RingMemory> Create(size_t bytes);
  // Maps a descriptor received from another process after checking its seals, size and magic; takes
  // the descriptor over. nullptr if it is not such a ring.
  static std::shared_ptr<RingMemory> Map(int descriptor);
  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  int descriptor() const { return descriptor_; }
  size_t bytes() const { return bytes_; }
  RingControl& control() { return *control_; }
  std::byte* data() { return data_; }

  // Either side may close the ring, with a code for the other (0 = orderly). Wakes both sides.
  void Close(uint32_t code);
  bool closed() const;
  uint32_t close_code() const;
  // How many bytes are not released yet. From any thread; the cursors are not checked, so it serves
  // for choices only.
  size_t kept() const;

  // Wakes a consumer (data side) or a producer (space side) that sleeps, without new data: for
  // events inside a process, and for acknowledgements on the opposite ring.
  void PokeConsumer();
  void PokeProducer();

  // The process that was the producer, or the consumer, has ended, perhaps between a store and the
  // wake-up that belongs to it, and this process takes its place.
  void ReplaceProducer();
  void ReplaceConsumer();

 private:
  RingMemory() = default;
  int descriptor_ = -1;
  size_t bytes_ = 0;
  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
};

using Deadline = std::chrono::steady_clock::time_point;

// Off with LONGWIRE_DISABLE=trim-rings.
bool RingsGiveBack();
// Giving back less costs more, in page faults when the ring is used again, than it gains.
inline constexpr size_t kWorthGivingBack = size_t{256} << 10;

class RingProducer {
 public:
  explicit RingProducer(std::shared_ptr<RingMemory> memory);

  // Position after the last byte that was committed or added.
  uint64_t written() const { return written_; }
  // How far the consumer's end has released (checked; a bad value closes the ring).
  uint64_t released();
  size_t space();

  // Contiguous room for `bytes` at written(), or nullptr when it does not fit now.
  std::byte* Reserve(size_t bytes);
  // Publishes the first `bytes` of the reserved room and wakes the consumer if it sleeps.
  void Commit(size_t bytes);
  // Commit in two steps: Publish publishes all bytes that were added since the last time.
  void Add(size_t bytes) { written_ += bytes; }
  void Publish();
  // Waits until `bytes` fit, the ring is closed, or the deadline passed; true if they fit.
  bool WaitForSpace(size_t bytes, Deadline deadline);
  // Returns the ring's data pages to the system if all bytes are released; afterwards the ring
  // reads as zeros. May be called between a Commit and the next Reserve. False if the ring holds
  // bytes, or if less than kWorthGivingBack was written since the last time.
  bool GiveBack();
  bool WorthGivingBack() const {
    return RingsGiveBack() && written_ - given_back_ >= kWorthGivingBack;
  }
  // Notifies the consumer that this side is idle: the ring in the opposite direction may return its
  // memory, too.
  void TellToRest();
  // Wakes the consumer if it sleeps (Commit does so itself).
  void Flush();

  RingMemory& memory() { return *memory_; }

 private:
  std::shared_ptr<RingMemory> memory_;
  uint64_t written_ = 0;
  uint64_t released_seen_ = 0;
  uint64_t given_back_ = 0;  // written() at that time
};

class RingConsumer {
 public:
  explicit RingConsumer(std::shared_ptr<RingMemory> memory);

  // Where this consumer reads next. It starts at the ring's released position.
  uint64_t cursor() const { return cursor_; }
  // The committed bytes from the cursor on, contiguous. They stay valid until released.
  std::span<const std::byte> Available();
  void Advance(size_t bytes) { cursor_ += bytes; }
  // Moves back to an unreleased position (a resume sends again from there).
  void Rewind(uint64_t position);
  // Releases everything below `position` (≤ cursor) to the producer.
  void Release(uint64_t position);
  uint64_t released() const { return released_; }

  // Waits until there is data past the cursor, the ring was poked or closed, or the deadline
  // passed. Spins for `spin` first (yielding), then sleeps. Returns true if there is data.
  bool Wait(std::chrono::nanoseconds spin, Deadline deadline);
  // As Wait, but for data beyond `position` of the log, for a reader that has half a record.
  bool WaitBeyond(uint64_t position, std::chrono::nanoseconds spin, Deadline deadline);
  // The same without sleep: spins until then, and returns true if anything came, be it data.
  bool SpinBeyond(uint64_t position, Deadline until);
  bool HasBeyond(uint64_t position) const;

  // True if the producer has called TellToRest since the last Rested().
  bool ToldToRest();
  void Rested() { rests_seen_ = rests_told_; }
  // Until when to wait for data: soon, if the consumer still has to rest.
  Deadline RestDeadline();

  RingMemory& memory() { return *memory_; }

 private:
  // Whether a wait is over: the ring was poked or closed, or has data.
  bool Ends(uint64_t position);

  std::shared_ptr<RingMemory> memory_;
  uint64_t cursor_ = 0;
  uint64_t released_ = 0;
  uint32_t pokes_seen_ = 0;
  uint32_t rests_told_ = 0;
  uint32_t rests_seen_ = 0;
};

}  // namespace longwire::wire
