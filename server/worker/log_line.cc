#include "server/worker/log_line.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace longwire::worker {

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
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, length);
}

}  // namespace longwire::worker
