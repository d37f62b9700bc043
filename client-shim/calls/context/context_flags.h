// The flags of contexts, primary ones too.
#pragma once

#include <cuda.h>

#include <bit>

namespace longwire::shim::hand {

// Known flags, and at most one way to wait.
inline bool AreContextFlags(unsigned flags) {
  constexpr unsigned kKnownFlags = CU_CTX_FLAGS_MASK | CU_CTX_MAP_HOST;
  return (flags & ~kKnownFlags) == 0 && std::popcount(flags & CU_CTX_SCHED_MASK) <= 1;
}

}  // namespace longwire::shim::hand
