// What generated entries ask of the client, for the round trip of the kitchen sink: no session, no
// fork, only counting.
#pragma once

#include "longwire/call_ids.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {

struct EntryLog {
  int begun = 0;
  int done = 0;
  CallId refused = CallId::kNone;
  CUresult refusal = CUDA_SUCCESS;  // what every prologue answers, if set
};
EntryLog& Log();

enum class Needs { kSession, kNoSession };

class Entry {
 public:
  explicit Entry(CallId, Needs = Needs::kSession) { ++Log().begun; }
  bool ok() const { return Log().refusal == CUDA_SUCCESS; }
  CUresult code() const { return Log().refusal; }
  CUresult Done(CUresult result) {
    ++Log().done;
    return result;
  }
};

inline bool HasCurrentContext() { return true; }

inline CUresult Refuse(CallId id) {
  Log().refused = id;
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace longwire::shim
