// For programs that go on when a call fails, and say which one did.
#pragma once

#include "where.h"

inline const char* failed = "";  // the call that did

#define TRY(call)                        \
  do {                                   \
    AT_THIS_LINE;                        \
    const cudaError_t try_code = (call); \
    if (try_code != cudaSuccess) {       \
      failed = #call;                    \
      return try_code;                   \
    }                                    \
  } while (false)
