#include "wire/rings/ring.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "wire/guards.h"
#include "wire/rings/ring_control.h"
#include "wire/switches.h"

namespace longwire::wire {
namespace {

using Clock = std::chrono::steady_clock;

// The code with which a ring is closed when the other side broke its rules.
constexpr uint32_t kBrokenCursor = 999;  // CUDA_ERROR_UNKNOWN

// Sleeps while *bell == seen, until woken or the deadline. The bell is shared between processes.
void SleepOn(std::atomic<uint32_t>& bell, uint32_t seen, Deadline deadline) {
  timespec wait{};
  timespec* limit = nullptr;
  if (deadline != Deadline::max()) {
    auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now());
    if (left.count() <= 0) return;
    wait.tv_sec = left.count() / 1'000'000'000;
    wait.tv_nsec = left.count() % 1'000'000'000;
    limit = &wait;
  }
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell), FUTEX_WAIT, seen, limit, nullptr, 0);
}

void WakeIfSleeping(std::atomic<uint32_t>& bell, std::atomic<uint32_t>& sleeping) {
  // Pairs with the sleeper, which sets its flag and then reads the cursor again.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_relaxed) == 0) return;
  bell.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&bell), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Spins for at most `spin`, yielding after each poll, then sleeps on the bell, until `done` or the
// deadline.
template <class Done>
bool SpinThenSleep(std::atomic<uint32_t>& bell, std::atomic<uint32_t>& sleeping,
                   std::chrono::nanoseconds spin, Deadline deadline, Done done) {
  if (done()) return true;
  for (auto end = Clock::now() + spin; spin.count() > 0 && Clock::now() < end;) {
    sched_yield();
    if (done()) return true;
  }
  while (true) {
    uint32_t seen = bell.load(std::memory_order_seq_cst);
    sleeping.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool finished = done();
    bool late = !finished && deadline != Deadline::max() && Clock::now() >= deadline;
    if (!finished && !late) SleepOn(bell, seen, deadline);
    sleeping.fetch_sub(1, std::memory_order_seq_cst);
    if (finished || done()) return true;
    if (late) return false;
  }
}

}  // namespace

bool RingsGiveBack() {
  static const bool on = !IsSwitchedOff("trim-rings");
  return on;
}

RingProducer::RingProducer(std::shared_ptr<RingMemory> memory) : memory_(std::move(memory)) {
  written_ = memory_->control().written.load(std::memory_order_acquire);
  released_seen_ = memory_->control().released.load(std::memory_order_acquire);
}

uint64_t RingProducer::released() {
  uint64_t released = memory_->control().released.load(std::memory_order_acquire);
  if (released < released_seen_ || released > written_) {
    memory_->Close(kBrokenCursor);
    return released_seen_;
  }
  released_seen_ = released;
  return released;
}

size_t RingProducer::space() {
  if (written_ - released_seen_ > memory_->bytes()) return 0;
  return memory_->bytes() - static_cast<size_t>(written_ - released());
}

std::byte* RingProducer::Reserve(size_t bytes) {
  size_t kept = static_cast<size_t>(written_ - released_seen_);
  if (kept > memory_->bytes()) return nullptr;
  if (bytes > memory_->bytes() - kept && bytes > space()) return nullptr;
  return memory_->data() + (written_ & (memory_->bytes() - 1));
}

void RingProducer::Commit(size_t bytes) {
  Add(bytes);
  Publish();
}

void RingProducer::Publish() {
  memory_->control().written.store(written_, std::memory_order_release);
  Flush();
}

void RingProducer::Flush() {
  WakeIfSleeping(memory_->control().data_bell, memory_->control().consumer_sleeping);
}

bool RingProducer::GiveBack() {
  if (!WorthGivingBack() || released() != written_) return false;
  // By address: the descriptor's number may be a file of the program's by now.
  if (madvise(memory_->data(), memory_->bytes(), MADV_REMOVE) != 0) return false;
  given_back_ = written_;
  return true;
}

void RingProducer::TellToRest() {
  memory_->control().rests.fetch_add(1, std::memory_order_relaxed);
  memory_->PokeConsumer();
}

bool RingProducer::WaitForSpace(size_t bytes, Deadline deadline) {
  RingControl& control = memory_->control();
  bool enough = SpinThenSleep(control.space_bell, control.producer_sleeping, {}, deadline,
                              [&] { return space() >= bytes || memory_->closed(); });
  return enough && space() >= bytes && !memory_->closed();
}

RingConsumer::RingConsumer(std::shared_ptr<RingMemory> memory) : memory_(std::move(memory)) {
  released_ = memory_->control().released.load(std::memory_order_acquire);
  cursor_ = released_;
  pokes_seen_ = memory_->control().consumer_pokes.load(std::memory_order_acquire);
  rests_seen_ = memory_->control().rests.load(std::memory_order_relaxed);
}

std::span<const std::byte> RingConsumer::Available() {
  uint64_t written = memory_->control().written.load(std::memory_order_acquire);
  bool beyond = written - released_ > memory_->bytes() && !kPlantedBug;
  if (written < cursor_ || beyond) {
    memory_->Close(kBrokenCursor);
    return {};
  }
  return {memory_->data() + (cursor_ & (memory_->bytes() - 1)),
          static_cast<size_t>(written - cursor_)};
}

void RingConsumer::Rewind(uint64_t position) {
  if (position >= released_ && position <= cursor_) cursor_ = position;
}

void RingConsumer::Release(uint64_t position) {
  if (position <= released_ || position > cursor_) return;
  released_ = position;
  memory_->control().released.store(position, std::memory_order_release);
  WakeIfSleeping(memory_->control().space_bell, memory_->control().producer_sleeping);
}

bool RingConsumer::ToldToRest() {
  rests_told_ = memory_->control().rests.load(std::memory_order_relaxed);
  return rests_told_ != rests_seen_;
}

Deadline RingConsumer::RestDeadline() {
  constexpr std::chrono::milliseconds kAgain{200};
  return ToldToRest() ? Clock::now() + kAgain : Deadline::max();
}

bool RingConsumer::Wait(std::chrono::nanoseconds spin, Deadline deadline) {
  return WaitBeyond(cursor_, spin, deadline);
}

bool RingConsumer::WaitBeyond(uint64_t position, std::chrono::nanoseconds spin, Deadline deadline) {
  RingControl& control = memory_->control();
  SpinThenSleep(control.data_bell, control.consumer_sleeping, spin, deadline,
                [&] { return Ends(position); });
  return HasBeyond(position);
}

bool RingConsumer::SpinBeyond(uint64_t position, Deadline until) {
  while (!Ends(position)) {
    if (Clock::now() >= until) return false;
    sched_yield();
  }
  return true;
}

bool RingConsumer::HasBeyond(uint64_t position) const {
  return memory_->control().written.load(std::memory_order_acquire) > position;
}

bool RingConsumer::Ends(uint64_t position) {
  uint32_t pokes = memory_->control().consumer_pokes.load(std::memory_order_acquire);
  bool poked = pokes != pokes_seen_;
  pokes_seen_ = pokes;
  return poked || HasBeyond(position) || memory_->closed();
}

}  // namespace longwire::wire
