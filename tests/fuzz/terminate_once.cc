// Of several threads that end the process at once, as a planted bug may make them, one reports: the
// others would end it by a signal before libFuzzer has said what was found. One may find that
// memory is wrong and abort, while the wrong memory makes another one throw.
#include <unistd.h>

#include <atomic>
#include <exception>

namespace {

// Returns for the first thread that ends the process.
void ReportOnce() {
  static std::atomic_flag reports;
  while (reports.test_and_set()) pause();
}

[[noreturn]] void TerminateOnce() {
  ReportOnce();
  __gnu_cxx::__verbose_terminate_handler();
  _exit(1);  // not reached
}

[[maybe_unused]] const std::terminate_handler before = std::set_terminate(&TerminateOnce);

}  // namespace

// By the linker's --wrap: all calls of abort in this program, but not those in its libraries.
extern "C" {
[[noreturn]] void __real_abort();
[[noreturn]] void __wrap_abort() {
  ReportOnce();
  __real_abort();
}
}
