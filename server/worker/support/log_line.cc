#include "server/worker/support/log_line.h"

#include <fcntl.h>
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#endif
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "server/worker/support/own_pid.h"

namespace longwire::worker {
namespace {

int log_descriptor = STDERR_FILENO;
int other_pid = 0;

// A client decides how often a call fails: more lines in a second are counted alone. The warden
// limits what a worker writes, too (server/warden/worker_log.h).
std::atomic<uint32_t> lines_per_second{10};
std::atomic<bool> limited{true};
std::atomic<int64_t> second{0};
std::atomic<uint32_t> lines{0};  // in that second
std::atomic<uint64_t> left_out{0};

// Also called by a handler of signals: no locks.
bool MayWrite() {
  if (!limited.load()) return true;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (second.exchange(now.tv_sec) != now.tv_sec) lines.store(0);
  if (lines.fetch_add(1) < lines_per_second.load()) return true;
  left_out.fetch_add(1);
  return false;
}

void WriteLine(const char* format, va_list arguments) {
  char text[1024];
  int used = snprintf(text, sizeof(text), "longwire-worker[%d]: ", Pid());
  int more = vsnprintf(text + used, sizeof(text) - used - 1, format, arguments);
  if (more < 0) return;
  size_t length = static_cast<size_t>(used) + static_cast<size_t>(more);
  if (length > sizeof(text) - 2) length = sizeof(text) - 2;
  text[length++] = '\n';
  // One write per line, so that lines of several processes do not mix.
  [[maybe_unused]] ssize_t written = write(LogDescriptor(), text, length);
}

__attribute__((format(printf, 1, 2))) void Write(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  WriteLine(format, arguments);
  va_end(arguments);
}

}  // namespace

void KeepLog() {
  int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (kept < 0) return;
  log_descriptor = kept;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(kept)));
#endif
}

int LogDescriptor() { return log_descriptor; }

void SetPid(int pid) { other_pid = pid; }

int Pid() { return other_pid != 0 ? other_pid : getpid(); }

void SetLogLimit(uint32_t told) { lines_per_second.store(told); }

void LiftLogLimit() { limited.store(false); }

void LogLine(const char* format, ...) {
  if (!MayWrite()) return;
  if (uint64_t more = left_out.exchange(0)) {
    Write("%llu more lines of this session were left out", static_cast<unsigned long long>(more));
  }
  va_list arguments;
  va_start(arguments, format);
  WriteLine(format, arguments);
  va_end(arguments);
}

}  // namespace longwire::worker
