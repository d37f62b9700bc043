// A driver call of a benchmark program that must succeed: prints which one did not, and ends.
#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

namespace longwire::bench {

inline void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "unknown";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "%s: %s (%d)\n", what, name, static_cast<int>(result));
  std::exit(1);
}

}  // namespace longwire::bench

#define CHECK(call) longwire::bench::Check(call, #call)
