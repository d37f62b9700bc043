// For executables alone: what names OpenStandardDescriptors gets this file, and with it an entry
// among what runs before the constructors of libraries, some of which make descriptors.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/descriptors.h"

namespace longwire::wire {

// Before a sanitizer is ready for anything.
__attribute__((no_sanitize("address", "thread", "undefined"))) void OpenStandardDescriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (syscall(SYS_fcntl, number, F_GETFD) >= 0) continue;
    // The lowest that is free, which is this one.
    syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
  }
}

namespace {

[[gnu::section(".preinit_array"),
  gnu::used]] void (*const before_libraries)() = OpenStandardDescriptors;

}  // namespace
}  // namespace longwire::wire
