// Early return for functions whose result says whether they succeeded: an enumeration in which zero
// is success, as CUresult.
#pragma once

// Evaluates `expression`; unless it is zero, the enclosing function returns it.
#define LONGWIRE_TRY(expression)                                                \
  do {                                                                          \
    if (auto try_result = (expression); try_result != decltype(try_result){}) { \
      return try_result;                                                        \
    }                                                                           \
  } while (false)
