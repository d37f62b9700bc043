#include "wire/rings/awake.h"

#include <time.h>

#include "wire/switches.h"

namespace longwire::wire {
namespace {

// A long wait is charged in steps, so that others see what it costs.
constexpr std::chrono::milliseconds kStep{10};

uint64_t ProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

void Awake::Follow(const std::atomic<uint64_t>* allowed, std::atomic<uint64_t>* spent) {
  if (IsSwitchedOff("awake")) return;
  allowed_ = allowed;
  spent_ = spent;
}

bool AwakeWait::Stays(Awake::Time now) {
  if (!awake_.Stays(now)) return false;
  if (since_ == 0) {
    since_ = ProcessorTime();
    charged_at_ = now;
  } else if (now - charged_at_ >= kStep) {
    Charge();
    charged_at_ = now;
  }
  return true;
}

void AwakeWait::Charge() {
  if (since_ == 0) return;
  const uint64_t now = ProcessorTime();
  awake_.spent_->fetch_add(now - since_, std::memory_order_relaxed);
  since_ = now;
}

}  // namespace longwire::wire
