// Starts the link detached from the program, by two clones that share our memory until they exec.
// The first has no exit signal, so neither the program's wait nor its SIGCHLD handler sees it; the
// second is orphaned at once.
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/reason.h"
#include "client-shim/connect/link_limits.h"
#include "client-shim/connect/link_place.h"
#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr size_t kCloneStack = 64 << 10;

struct Launch {
  char* const* arguments;
  char* const* environment;
  std::byte* inner_stack_top;
  int words;      // becomes its standard error
  int error = 0;  // why it could not be started
};

// From here to exec only system calls: the memory is the parent's.
int ExecLink(void* argument) {
  auto* launch = static_cast<Launch*>(argument);
  sigset_t none;
  sigemptyset(&none);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    // Not the C library's sigaction: handlers are the child's own here (no CLONE_SIGHAND).
    sigaction(signal, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &none, nullptr);
  wire::SilenceStandardDescriptors();
  if (launch->words >= 0) syscall(SYS_dup3, launch->words, STDERR_FILENO, 0);
  constexpr unsigned kCloseOnExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  syscall(SYS_close_range, 3u, ~0u, kCloseOnExec);
  LeaveLimits();
  umask(077);
  if (chdir("/") == 0) execve(launch->arguments[0], launch->arguments, launch->environment);
  launch->error = errno;
  _exit(127);
}

int Between(void* argument) {
  auto* launch = static_cast<Launch*>(argument);
  setsid();
  int child = clone(ExecLink, launch->inner_stack_top, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
  if (child < 0) launch->error = errno;
  _exit(0);
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

bool StartLink(const LinkPlace& place, int words, std::string* sentence) {
  const std::string& binary = place.words.front();
  if (access(binary.c_str(), X_OK) != 0) {
    *sentence = binary + " cannot be started: " + base::Reason(errno) +
                "; set LONGWIRE_LINK to the longwire-link to use";
    return false;
  }
  std::vector<std::string> line = place.words, variables = place.environment;
  std::vector<char*> arguments = Pointers(line), environment = Pointers(variables);
  auto stacks = std::make_unique<std::byte[]>(2 * kCloneStack);
  Launch launch{arguments.data(), environment.data(), stacks.get() + kCloneStack, words};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int child = clone(Between, stacks.get() + 2 * kCloneStack, CLONE_VM | CLONE_VFORK, &launch);
  int clone_error = errno;
  if (child > 0) {
    while (waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child > 0 && launch.error == 0) return true;
  int error = child > 0 ? launch.error : clone_error;
  *sentence = binary + " cannot be started: " + base::ReasonOfNoThread(error);
  return false;
}

}  // namespace longwire::shim
