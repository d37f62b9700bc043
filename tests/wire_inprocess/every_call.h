// Every function of the description that is not refused, with neutral arguments (neutral.h): a new
// one is there without a word.
#pragma once

#include <cuda.h>

#include <span>

namespace longwire::joined {

struct EveryCall {
  const char* name;
  const char* without_session;  // why it answers when the session has ended; "": it must not
  CUresult (*make)();
};
std::span<const EveryCall> EveryCallThereIs();

}  // namespace longwire::joined
