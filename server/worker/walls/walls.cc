#include "server/worker/walls/walls.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string_view>

namespace longwire::worker {
namespace {

// Workers first, then keepers, and the daemon last (deploy/systemd).
constexpr std::string_view kMemoryGoesFirst = "800";  // oom_score_adj

void LetMemoryGoFirst() {
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  // Where /proc is read-only it stays as it is.
  [[maybe_unused]] ssize_t written = write(score, kMemoryGoesFirst.data(), kMemoryGoesFirst.size());
  close(score);
}

bool Limit(__rlimit_resource resource, rlim_t most) {
  rlimit limit{most, most};
  return setrlimit(resource, &limit) == 0;
}

}  // namespace

const char* StandBehind(const Walls& walls) {
  sigset_t none;  // who started it may have had some blocked
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();
  LetMemoryGoFirst();  // while /proc/self is this user's
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return "cannot close itself to other processes";
  if (!Limit(RLIMIT_CORE, 0)) return "cannot forbid core dumps";
  if (walls.processes > 0 && !Limit(RLIMIT_NPROC, static_cast<rlim_t>(walls.processes))) {
    return "cannot limit its processes";
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "cannot set no_new_privs";
  if (!LimitSystemCalls(walls.system_calls, DriverBranch(), STDERR_FILENO)) {
    return "this kernel does not filter system calls: set workers.system_calls: off";
  }
  return nullptr;
}

}  // namespace longwire::worker
