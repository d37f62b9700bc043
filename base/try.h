// Early return for functions that return a status in which zero is success, such as CUresult.
#pragma once

// Evaluates `expression`; unless it is zero, the enclosing function returns it.
#define LONGWIRE_TRY(expression)                                                \
  do {                                                                          \
    if (auto try_result = (expression); try_result != decltype(try_result){}) { \
      return try_result;                                                        \
    }                                                                           \
  } while (false)
