#include "client-shim/connect/link_limits.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr rlim_t kStack = rlim_t{8} << 20;  // as usual; it is also the size of threads' stacks
constexpr int kIoPriorityOfProcess = 1;     // IOPRIO_WHO_PROCESS

// Hard limits below these hold a link up. Nearly all systems have some of the last two.
struct Least {
  __rlimit_resource resource;
  rlim_t enough;
};
constexpr Least kLeast[] = {{RLIMIT_CPU, RLIM_INFINITY},  {RLIMIT_FSIZE, RLIM_INFINITY},
                            {RLIMIT_DATA, RLIM_INFINITY}, {RLIMIT_AS, RLIM_INFINITY},
                            {RLIMIT_NOFILE, 4096},        {RLIMIT_NPROC, 4096}};

void Raise(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  if (resource == RLIMIT_CORE) {
    limit.rlim_cur = 0;  // its memory has keys
  } else if (resource == RLIMIT_STACK) {
    limit.rlim_cur = std::min(kStack, limit.rlim_max);
  } else {
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    if (limit.rlim_max != RLIM_INFINITY && setrlimit(resource, &none) == 0) return;
    limit.rlim_cur = limit.rlim_max;
  }
  setrlimit(resource, &limit);
}

}  // namespace

void LeaveLimits() {
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    Raise(static_cast<__rlimit_resource>(resource));
  }
  const sched_param none{};
  if (sched_getscheduler(0) != SCHED_OTHER) sched_setscheduler(0, SCHED_OTHER, &none);
  setpriority(PRIO_PROCESS, 0, 0);
  syscall(SYS_ioprio_set, kIoPriorityOfProcess, 0, 0);
}

std::string Belonging() {
  constexpr size_t kTextLimit = size_t{64} << 10;
  std::string text = wire::ReadFile("/proc/self/cgroup", kTextLimit);
  // In a container all cgroups may have the same name.
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) == 0) text += std::to_string(space.st_ino);
  return text + " " + std::to_string(prctl(PR_GET_SECCOMP));
}

LastingLimits FindLastingLimits() {
  LastingLimits found;
  for (const Least& least : kLeast) {
    rlimit limit{};
    if (getrlimit(least.resource, &limit) != 0 || limit.rlim_max >= least.enough) continue;
    found.hard += std::to_string(least.resource) + "=" + std::to_string(limit.rlim_max) + " ";
  }
  errno = 0;
  int nice = getpriority(PRIO_PROCESS, 0);
  if (errno == 0 && nice > 0) found.speed = "nice=" + std::to_string(nice) + " ";
  int policy = sched_getscheduler(0);
  bool slow = policy == SCHED_IDLE || policy == SCHED_BATCH;
  if (slow) found.speed += "policy=" + std::to_string(policy);
  return found;
}

}  // namespace longwire::shim
