// Spinning is rationed: a thread may poll for a bounded time before it sleeps, but at most on
// half the cores this process may use at once (docs/decisions/0032), and nowhere where there is
// only one.
#pragma once

#include <chrono>
#include <functional>

#include "wire/rings/awake.h"

namespace longwire::transport {

// A poll that finds its answer within this costs less than the sleep and the wake it saves.
inline constexpr std::chrono::microseconds kSpinTime{50};

// Whether anybody in this process holds a permit, or stays awake.
bool AnybodySpins();
// Called by a thread that gets a permit while nobody else has one. Set once, before any.
void SetSpinningBegins(std::function<void()> begins);

// Held by a thread while it spins; `granted()` is false when it should sleep at once.
class SpinPermit {
 public:
  SpinPermit();
  ~SpinPermit();
  SpinPermit(const SpinPermit&) = delete;
  SpinPermit& operator=(const SpinPermit&) = delete;
  bool granted() const { return granted_; }

 private:
  bool granted_ = false;
};

// A thread's stretch of staying awake between messages, which others ration: on the server the
// daemon (docs/decisions/0060), on the client `has_spare`, asked now and then; an empty one is
// never asked.
class AwakeSpin {
 public:
  AwakeSpin(wire::Awake& awake, const std::function<bool()>& has_spare);
  ~AwakeSpin();
  AwakeSpin(const AwakeSpin&) = delete;
  AwakeSpin& operator=(const AwakeSpin&) = delete;
  // Whether the thread spins on instead of sleeping.
  bool Stays(wire::Awake::Time now);

 private:
  const std::function<bool()>& has_spare_;
  wire::AwakeWait wait_;
  wire::Awake::Time ask_at_{};
};

}  // namespace longwire::transport
