// Of several threads that terminate at once, as a planted bug may make them, one reports: the
// others would end the process by abort before libFuzzer has said what was found.
#include <unistd.h>

#include <atomic>
#include <exception>

namespace {

[[noreturn]] void TerminateOnce() {
  static std::atomic_flag reports;
  while (reports.test_and_set()) pause();
  __gnu_cxx::__verbose_terminate_handler();
  _exit(1);  // not reached
}

[[maybe_unused]] const std::terminate_handler before = std::set_terminate(&TerminateOnce);

}  // namespace
