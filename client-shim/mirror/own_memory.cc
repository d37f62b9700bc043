#include "client-shim/mirror/own_memory.h"

#include <unistd.h>

#include <algorithm>

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

}  // namespace longwire::shim
