#include "link/transport/spinning.h"

#include <sched.h>

#include <algorithm>
#include <atomic>

namespace longwire::transport {
namespace {

int PermitCount() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 0;
  int cores = CPU_COUNT(&allowed);
  return cores <= 1 ? 0 : std::max(1, cores / 4);
}

std::atomic<int>& Permits() {
  static std::atomic<int> permits{PermitCount()};
  return permits;
}

}  // namespace

SpinPermit::SpinPermit() {
  granted_ = Permits().fetch_sub(1, std::memory_order_relaxed) > 0;
  if (!granted_) Permits().fetch_add(1, std::memory_order_relaxed);
}

SpinPermit::~SpinPermit() {
  if (granted_) Permits().fetch_add(1, std::memory_order_relaxed);
}

}  // namespace longwire::transport
