#include "cli/restart/restart.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/environment.h"
#include "base/reason.h"
#include "cli/text.h"

namespace longwire::cli {
namespace {

constexpr int kSignalled = 128;
constexpr int kPassedOn[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

std::atomic<pid_t> child{0};
std::atomic<bool> told_to_end{false};

void PassOn(int signal) {
  if (signal == SIGTERM || signal == SIGHUP) told_to_end = true;
  const pid_t to = child;
  if (to > 0) kill(to, signal);
}

// A file that the program's library writes its fault to, removed with this object.
class FaultFile {
 public:
  FaultFile() {
    const char* folder = base::Environment("TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/longwire-fault-XXXXXX";
    file_ = mkostemp(path_.data(), O_CLOEXEC);
  }
  ~FaultFile() {
    if (file_ < 0) return;
    close(file_);
    unlink(path_.c_str());
  }
  FaultFile(const FaultFile&) = delete;
  FaultFile& operator=(const FaultFile&) = delete;

  bool valid() const { return file_ >= 0; }
  const std::string& path() const { return path_; }
  // The first line that was written since the last call; empty: none.
  std::string Take() {
    std::array<char, 4096> text{};
    const ssize_t bytes = pread(file_, text.data(), text.size(), 0);
    if (ftruncate(file_, 0) != 0 || bytes <= 0) return {};
    std::string line(text.data(), static_cast<size_t>(bytes));
    return line.substr(0, line.find('\n'));
  }

 private:
  std::string path_;
  int file_ = -1;
};

// The program's processes alone are asked by the terminal to end; what others send is passed on.
void TakeSignals() {
  struct sigaction action {};
  action.sa_handler = &PassOn;
  for (int signal : kPassedOn) sigaction(signal, &action, nullptr);
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
}

void RestoreSignals() {
  for (int which : kPassedOn) signal(which, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGQUIT, SIG_DFL);
}

// Its exit status as the shell has it; -1 with errno.
int RunOnce(const std::function<int()>& become) {
  const pid_t started = fork();
  if (started < 0) return -1;
  if (started == 0) {
    RestoreSignals();
    const int status = become();
    std::fflush(nullptr);
    _exit(status);
  }
  child = started;
  int status = 0;
  while (waitpid(started, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  child = 0;
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGINT) told_to_end = true;
    return kSignalled + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

}  // namespace

int RunWithRestarts(const std::string& command, const std::string& program, unsigned restarts,
                    const std::function<int()>& become) {
  FaultFile faults;
  if (!faults.valid()) {
    std::fprintf(stderr,
                 "longwire %s: --restart needs a file in $TMPDIR or /tmp to learn of faults, which "
                 "cannot be made: %s\n",
                 command.c_str(), base::Reason(errno).c_str());
    return 1;
  }
  setenv("LONGWIRE_FAULT_FILE", faults.path().c_str(), 1);
  TakeSignals();
  for (unsigned again = 0;; ++again) {
    const int status = RunOnce(become);
    if (status < 0) {
      std::fprintf(stderr, "longwire %s: %s cannot be started: %s\n", command.c_str(),
                   program.c_str(), base::Reason(errno).c_str());
      return 1;
    }
    const std::string fault = faults.Take();
    if (status == 0 || fault.empty() || told_to_end) return status;
    const std::string what = "longwire " + command + ": " + program + " ended with status " +
                             std::to_string(status) + " after a fault (" + Printable(fault) + ")";
    if (again == restarts) {
      std::fprintf(stderr, "%s; it was started again %u times already, no more\n", what.c_str(),
                   restarts);
      return status;
    }
    std::fprintf(stderr, "%s; it is started again (%u of %u)\n", what.c_str(), again + 1, restarts);
  }
}

}  // namespace longwire::cli
