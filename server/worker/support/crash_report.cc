#include "server/worker/support/crash_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "server/worker/support/log_line.h"

namespace longwire::worker {
namespace {

constexpr int kMaxFrames = 24;
constexpr int kSignalled = 128;  // as server/warden/starter_client.cc
constexpr size_t kStackBytes = size_t{64} << 10;

// Where a thread's handler runs: its own stack may be what overflowed.
class HandlerStack {
 public:
  HandlerStack() : memory_(std::make_unique<char[]>(kStackBytes)) {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
  }
  ~HandlerStack() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

 private:
  std::unique_ptr<char[]> memory_;
};

std::atomic<int> unread{-1};

// What the standard library said of why it ends the process, perhaps.
void CopyUnread() {
  std::array<char, 1024> text;
  ssize_t got = 0;
  while (unread >= 0 && (got = read(unread, text.data(), text.size())) > 0) {
    if (write(LogDescriptor(), text.data(), static_cast<size_t>(got)) < 0) return;
  }
}

// Not all of this may be called from a signal handler; the process is lost in any case, and a
// second signal ends it at once (SA_RESETHAND).
void Report(int signal) {
  CopyUnread();
  LiftLogLimit();
  LogLine("died of signal %d at:", signal);
  // Last: a stack that was overwritten may end the process here.
  std::array<void*, kMaxFrames> places;
  int count = backtrace(places.data(), kMaxFrames);
  for (int i = 0; i < count; ++i) {
    Dl_info found{};
    bool known = dladdr(places[i], &found) != 0 && found.dli_fname != nullptr;
    uint64_t offset = reinterpret_cast<uint64_t>(places[i]);
    if (known) offset -= reinterpret_cast<uint64_t>(found.dli_fbase);
    LogLine("  %s +0x%llx %s", known ? found.dli_fname : "?",
            static_cast<unsigned long long>(offset),
            known && found.dli_sname != nullptr ? found.dli_sname : "");
  }
  raise(signal);
  // The first process of its namespaces, as a worker is behind walls, survives that.
  _exit(kSignalled + signal);
}

// The kernel ends the first process of its namespaces, as a worker is behind walls, by no signal
// that it does not handle, but by SIGKILL.
void End(int signal) {
  raise(signal);
  _exit(kSignalled + signal);
}

void EndBySignals() {
  struct sigaction action {
  }, before{};
  action.sa_handler = End;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGTERM, SIGUSR1, SIGUSR2}) {
    bool ends = sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL;
    if (ends) sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void ReportOverflows() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  thread_local HandlerStack stack;
#endif
}

void ReportUnread(int descriptor) { unread = descriptor; }

void ReportCrashes() {
  EndBySignals();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these say it themselves
  std::array<void*, 1> none;
  backtrace(none.data(), 1);  // loads what it needs now
  ReportOverflows();
  struct sigaction action {};
  action.sa_handler = Report;
  action.sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
#endif
}

}  // namespace longwire::worker
