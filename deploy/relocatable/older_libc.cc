// Functions that our compiler's static libraries expect and that C libraries before 2.36 lack.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// For std::random_device. The kernel gives what it has at once: a few bytes, after the boot's
// start.
extern "C" uint32_t arc4random() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) abort();
  return number;
}
