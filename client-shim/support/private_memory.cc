#include "client-shim/support/private_memory.h"

#include <sys/mman.h>

#include "base/memory_sizes.h"

namespace longwire::shim {

bool PrivateMemory::Reserve(size_t bytes) {
  if (bytes <= bytes_) return true;
  Free();
  bytes = base::RoundUp(bytes, base::kPageBytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return false;
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  return true;
}

void PrivateMemory::Free() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace longwire::shim
