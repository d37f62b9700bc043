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

std::function<void()>& Begins() {
  static std::function<void()> begins;
  return begins;
}

}  // namespace

bool AnybodySpins() { return Permits().load() < PermitCount(); }

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

}  // namespace longwire::transport
