#include "server/worker/walls/system_call_log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bitset>
#include <cstdio>

namespace longwire::worker {
namespace {

constexpr size_t kNumbers = 1024, kKinds = 64;

struct Ends {
  int listener;  // where the number of the filter's listener arrives
  int log;
};

void Write(int log, const seccomp_data& call) {
  char text[160];
  const auto* given = reinterpret_cast<const unsigned long long*>(call.args);
  int length =
      snprintf(text, sizeof(text),
               "system call %d (%llx, %llx, %llx) is not on the list of what workers need\n",
               call.nr, given[0], given[1], given[2]);
  [[maybe_unused]] ssize_t written = write(log, text, static_cast<size_t>(length));
}

// It takes no lock and allocates nothing: whoever holds a lock may wait for it.
void* Answer(void* given) {
  const Ends ends = *static_cast<Ends*>(given);
  int listener = -1;
  if (read(ends.listener, &listener, sizeof(listener)) != sizeof(listener)) return nullptr;
  std::bitset<kNumbers * kKinds> seen;
  while (true) {
    seccomp_notif asked{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;
      return nullptr;
    }
    // Some calls are on the list with certain first arguments.
    const size_t kind = asked.data.args[0] % kKinds;
    const auto number = static_cast<size_t>(asked.data.nr);
    const size_t place = number * kKinds + (number == SYS_socket || number == SYS_prctl ? kind : 0);
    if (number < kNumbers && !seen[place]) {
      seen[place] = true;
      Write(ends.log, asked.data);
    }
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

}  // namespace

int StartSystemCallLog(int log) {
  static Ends ends;  // for as long as the process lives
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) return -1;
  // Standard error is the program's later.
  ends = {pair[0], fcntl(log, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int problem = pthread_create(&thread, nullptr, Answer, &ends);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (problem == 0) problem = pthread_detach(thread);
  errno = problem;
  return problem == 0 ? pair[1] : -1;
}

}  // namespace longwire::worker
