// What a driver's library does, for driver_mappings_test.cc: it maps memory.
#include <sys/mman.h>

#include <cstddef>

extern "C" __attribute__((visibility("default"))) void* MapHere(void* address, size_t bytes) {
  void* volatile mapped =
      mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped;
}
