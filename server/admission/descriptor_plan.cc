#include "server/admission/descriptor_plan.h"

#include <sys/resource.h>

#include <algorithm>

namespace longwire::admission {
namespace {

// Listeners, the warden's socket, event loops, files that a reload or a library opens for a moment.
constexpr size_t kOfTheDaemon = 48;
// A connection's socket; the queue of a stream on it.
constexpr size_t kOfConnection = 2;
// Control socket and its duplicate, pidfd, the page of gates and its bell, a message that is being
// answered; a local client's socket and segment.
constexpr size_t kOfSession = 7;
constexpr size_t kOfLocalClient = 2;
constexpr size_t kRings = 2;
// Of the rest, the part for strangers: one in four.
constexpr size_t kWaitingPart = 4;

}  // namespace

DescriptorPlan PlanDescriptors(size_t limit, size_t wanted) {
  const size_t free = limit - std::min(limit, kOfTheDaemon);
  DescriptorPlan plan;
  plan.limit = limit;
  plan.waiting = std::clamp<size_t>(free / kWaitingPart / kOfConnection, 2, wanted);
  plan.sessions = free - std::min(free, plan.waiting * kOfConnection);
  return plan;
}

DescriptorPlan PlanOwnDescriptors(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
  return PlanDescriptors(limit.rlim_cur, wanted);
}

size_t DescriptorsOfSession(uint32_t lanes, bool local) {
  const size_t logs = 1 + size_t{lanes};
  return kOfSession + logs * (local ? kRings : kRings + kOfConnection) +
         (local ? kOfLocalClient : 0);
}

}  // namespace longwire::admission
