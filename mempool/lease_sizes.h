// Which chunks to lease for a request. The server keeps chunks of 2, 64 and 512 MiB and exact sizes
// from 1 GiB; costs are per chunk, so they are as large as the request allows, and not larger.
#pragma once

#include <cstdint>
#include <vector>

#include "mempool/device.h"

namespace longwire::mempool {

inline constexpr uint64_t kArenaChunk = 64 * kMiB;  // in which the arena grows

// `bytes` is a multiple of the granularity; the chunks have as many together.
inline std::vector<uint64_t> LeaseSizes(uint64_t bytes) {
  if (bytes >= kGiB) return {bytes};
  std::vector<uint64_t> sizes;
  for (uint64_t size : {512 * kMiB, 64 * kMiB}) {
    for (; bytes >= size; bytes -= size) sizes.push_back(size);
  }
  if (bytes != 0) sizes.push_back(bytes);
  return sizes;
}

}  // namespace longwire::mempool
