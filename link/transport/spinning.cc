#include "link/transport/spinning.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "wire/rings/spinning.h"

namespace longwire::transport {
namespace {

int PermitCount() {
  static const int cores = wire::AllowedCores();
  return cores <= 1 ? 0 : std::max(1, cores / 2);
}

std::atomic<int>& Permits() {
  static std::atomic<int> permits{PermitCount()};
  return permits;
}

std::atomic<int>& Awakes() {
  static std::atomic<int> awakes{0};
  return awakes;
}

// How often a thread that stays awake asks whether the host has cores to spare.
constexpr std::chrono::milliseconds kSpareLook{10};

std::function<void()>& Begins() {
  static std::function<void()> begins;
  return begins;
}

}  // namespace

bool AnybodySpins() { return Permits().load() < PermitCount() || Awakes().load() != 0; }

void SetSpinningBegins(std::function<void()> begins) { Begins() = std::move(begins); }

SpinPermit::SpinPermit() {
  int left = Permits().fetch_sub(1);
  granted_ = left > 0;
  if (!granted_) {
    Permits().fetch_add(1);
  } else if (left == PermitCount() && Begins()) {
    Begins()();
  }
}

SpinPermit::~SpinPermit() {
  if (granted_) Permits().fetch_add(1);
}

AwakeSpin::AwakeSpin(wire::Awake& awake, const std::function<bool()>& has_spare)
    : has_spare_(has_spare), wait_(awake) {
  bool first = !AnybodySpins();
  Awakes().fetch_add(1);
  if (first && Begins()) Begins()();
}

AwakeSpin::~AwakeSpin() { Awakes().fetch_sub(1); }

bool AwakeSpin::Stays(wire::Awake::Time now) {
  if (!wait_.Stays(now)) return false;
  if (!has_spare_ || now < ask_at_) return true;
  ask_at_ = now + kSpareLook;
  return has_spare_();
}

}  // namespace longwire::transport
