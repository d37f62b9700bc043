// The two kinds of error, never mixed: a broken protocol (WireResult, ends the session) and a CUDA
// error (CUresult, ordinary data that travels as a reply).
#pragma once

namespace longwire::wire {

enum class [[nodiscard]] WireResult{kOk, kFatal};

}  // namespace longwire::wire

// Returns kFatal from the enclosing function if `expression` did.
#define LW_TRY(expression)                                   \
  do {                                                       \
    if ((expression) != ::longwire::wire::WireResult::kOk) { \
      return ::longwire::wire::WireResult::kFatal;           \
    }                                                        \
  } while (false)
