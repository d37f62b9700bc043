#include "server/worker/support/log_line.h"

#include <fcntl.h>
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#endif
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace longwire::worker {
namespace {

int log_descriptor = STDERR_FILENO;

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

void LogLine(const char* format, ...) {
  char text[1024];
  int used = snprintf(text, sizeof(text), "longwire-worker[%d]: ", getpid());
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(text + used, sizeof(text) - used - 1, format, arguments);
  va_end(arguments);
  if (more < 0) return;
  size_t length = static_cast<size_t>(used) + static_cast<size_t>(more);
  if (length > sizeof(text) - 2) length = sizeof(text) - 2;
  text[length++] = '\n';
  // One write per line, so that lines of several processes do not mix.
  [[maybe_unused]] ssize_t written = write(LogDescriptor(), text, length);
}

}  // namespace longwire::worker
