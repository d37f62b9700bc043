#include "server/warden/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/reason.h"

namespace longwire::warden {
namespace {

constexpr int kFirstDescriptor = 3;

// Runs in the child; everything that allocates was done before.
[[noreturn]] void Execute(const Program& program, char* const* arguments, char* const* environment,
                          std::vector<int>& descriptors, pid_t parent) {
  auto must = [](bool good, const char* what) {
    if (good) return;
    dprintf(2, "longwire-warden: starting a process: %s: %s\n", what, strerror(errno));
    _exit(kNotStarted);
  };
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent, "the warden is gone");
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  rlimit none_at_all{0, 0};
  must(setrlimit(RLIMIT_CORE, &none_at_all) == 0, "core limit");
  if (program.own_network) must(unshare(CLONE_NEWNET) == 0, "network namespace");
  int null = open("/dev/null", O_RDONLY);
  must(null >= 0 && dup2(null, 0) == 0, "/dev/null");
  if (program.error >= 0) must(dup2(program.error, STDERR_FILENO) >= 0, "standard error");
  // First out of the way of their final numbers, then to these.
  int count = static_cast<int>(descriptors.size());
  for (int& descriptor : descriptors) {
    descriptor = fcntl(descriptor, F_DUPFD, kFirstDescriptor + count);
    must(descriptor >= 0, "descriptors");
  }
  for (int i = 0; i < count; ++i) {
    must(dup2(descriptors[i], kFirstDescriptor + i) >= 0, "descriptors");
  }
  must(syscall(SYS_close_range, kFirstDescriptor + count, ~0U, 0) == 0, "close_range");
  execve(program.path.c_str(), arguments, environment);
  must(false, program.path.c_str());
  _exit(kNotStarted);
}

}  // namespace

Process Spawn(const Program& program) {
  std::vector<char*> arguments = {const_cast<char*>(program.path.c_str())};
  for (const auto& argument : program.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (const auto& entry : program.environment) {
    environment.push_back(const_cast<char*>(entry.c_str()));
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    size_t name = std::strcspn(*entry, "=") + 1;
    bool replaced = false;
    for (const auto& own : program.environment) replaced |= own.compare(0, name, *entry, name) == 0;
    if (!replaced) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  std::vector<int> descriptors = program.descriptors;

  pid_t parent = getpid();
  Process process;
  pid_t pid = fork();
  if (pid < 0) return process;  // errno says why
  if (pid == 0) Execute(program, arguments.data(), environment.data(), descriptors, parent);
  process.pidfd.Reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec
  if (process.pidfd.valid()) {
    process.pid = pid;
    return process;
  }
  // Its end would not be seen.
  const int error = errno;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  errno = error;
  return process;
}

bool CanIsolateNetwork() {
  pid_t pid = fork();
  if (pid == 0) _exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
  int status = 1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

bool HasNetwork() {
  wire::Descriptor probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe.valid() || errno == EMFILE || errno == ENFILE;
}

void Kill(const Process& process) {
  syscall(SYS_pidfd_send_signal, process.pidfd.get(), SIGKILL, nullptr, 0);
}

bool Reap(const Process& process, int* exit_code, int* signal) {
  int status = 0;
  if (waitpid(process.pid, &status, WNOHANG) != process.pid) return false;
  *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return true;
}

std::string HowItEnded(int exit_code, int signal) {
  if (signal == SIGKILL) {
    return "was killed by signal 9, as the kernel does where memory is used up (dmesg says so)";
  }
  if (signal != 0) return "was killed by signal " + std::to_string(signal);
  if (exit_code == base::kSystemRefused) {
    return "ended: the system refused it a thread or memory; the log of longwire-warden says which";
  }
  if (exit_code == kNotStarted) return "could not start; the log of longwire-warden says why";
  return "ended with code " + std::to_string(exit_code);
}

}  // namespace longwire::warden
