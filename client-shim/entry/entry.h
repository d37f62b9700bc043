// The checks that every exported function makes first (initialised, not after fork or exit, not
// inside a host function, not unsafe during a capture), and what it does last (trace and error
// log). Before cuInit nothing here takes a lock, allocates or starts a thread.
#pragma once

#include <cuda.h>

#include "client-shim/session/process_state.h"
#include "client-shim/session/session.h"
#include "longwire/call_ids.h"
#include "wire/limits.h"

namespace longwire::shim {

// Does a call fail when the session has ended?
enum class Needs : uint8_t { kSession, kNoSession };

class Entry {
 public:
  explicit Entry(CallId id, Needs needs = Needs::kSession) : id_(id), needs_(needs) {
    if (__builtin_expect(CurrentProcessState() != ProcessState::kReady ||
                             special_calls.load(std::memory_order_relaxed) != 0,
                         0)) {
      CheckSlowly();
    }
  }
  bool ok() const { return code_ == CUDA_SUCCESS; }
  CUresult code() const { return code_; }
  // The call's result: an error if the session has ended, whatever the body returned.
  CUresult Done(CUresult result) {
    if (__builtin_expect(session_over.load(std::memory_order_acquire) != 0, 0)) {
      result = WhenOver(result);
    }
    if (__builtin_expect(result != CUDA_SUCCESS, 0)) Log(result);
    if (__builtin_expect(calls_are_traced.load(std::memory_order_relaxed), 0)) Trace(result);
    return result;
  }

  // Number of successful calls of each function, while calls are counted.
  static std::atomic<uint32_t> succeeded[wire::kCallNumbers];

 private:
  void CheckSlowly();
  CUresult WhenOver(CUresult result) const;
  void Trace(CUresult result) const;
  void Log(CUresult result) const;

  CallId id_;
  Needs needs_;
  CUresult code_ = CUDA_SUCCESS;
};

// True if this thread has a current context. The bodies check whether it can be used.
bool HasCurrentContext();

// The result of a call that this version does not serve. Logs it once per name.
CUresult Refuse(CallId id);
// The same for a name that is not in proto/. `said` is the flag of this name.
CUresult Refuse(const char* name, const char* reason, std::atomic<bool>* said);

// "CUDA_ERROR_…" and its description; nullptr for an unknown number.
const char* ErrorName(CUresult result);
const char* ErrorText(CUresult result);

}  // namespace longwire::shim
