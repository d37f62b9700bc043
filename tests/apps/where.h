// Where a program was when it died of a signal: the check that it had begun last. A driver that
// falls over a mistake is found that way, also where there is no debugger.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdio>

inline const char* volatile where_file = "";
inline volatile int where_line = 0;

#define AT_THIS_LINE (where_file = __FILE__, where_line = __LINE__)

inline void SayWhere(int signal) {
  char text[256];
  const int bytes = std::snprintf(text, sizeof text, "FAIL %s:%d: died of signal %d\n", where_file,
                                  where_line, signal);
  if (bytes > 0 && write(STDOUT_FILENO, text, static_cast<size_t>(bytes)) < 0) _exit(1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

inline const bool where_is_said = std::signal(SIGSEGV, SayWhere) != SIG_ERR;
