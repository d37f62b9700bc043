#include "client-shim/mirror/own_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "base/memory_sizes.h"

namespace longwire::shim {

bool ReadOwnMemory(const std::vector<iovec>& ranges, const std::vector<iovec>& targets) {
  constexpr size_t kRangesAtOnce = 256;
  const pid_t self = getpid();
  for (size_t i = 0; i < ranges.size(); i += kRangesAtOnce) {
    const size_t count = std::min(kRangesAtOnce, ranges.size() - i);
    size_t bytes = 0;
    for (size_t k = i; k < i + count; ++k) bytes += ranges[k].iov_len;
    const ssize_t read = process_vm_readv(self, &targets[i], count, &ranges[i], count, 0);
    if (read < 0 || static_cast<size_t>(read) != bytes) return false;
  }
  return true;
}

bool MayWriteOwnMemory(uint64_t address) {
  const uint64_t page = base::RoundDown(address, base::kPageBytes);
  if (madvise(reinterpret_cast<void*>(page), base::kPageBytes, MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  // EINVAL also says that the kernel does not know the advice: then not about a page of ours,
  // either.
  alignas(base::kPageBytes) static std::byte own[base::kPageBytes];
  static const bool known = madvise(own, base::kPageBytes, MADV_POPULATE_WRITE) == 0;
  return !known;
}

}  // namespace longwire::shim
