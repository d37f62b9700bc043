// What every exported function does first and last: may it run at all (initialised, not after fork,
// not after exit, not inside a host function, not unsafe beside a capture), and the trace. Before
// cuInit nothing here takes a lock, allocates or starts anything.
#pragma once

#include <cuda.h>

#include "client-shim/session/process_state.h"
#include "client-shim/session/session.h"
#include "longwire/call_ids.h"
#include "wire/limits.h"

namespace longwire::shim {

// Whether a call can say that the session has ended.
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
  // Success only if the session lives: whatever ended a wait within the call, and whatever the body
  // made of that.
  CUresult Done(CUresult result) {
    if (__builtin_expect(session_over.load(std::memory_order_acquire) != 0, 0)) {
      result = WhenOver(result);
    }
    if (__builtin_expect(result != CUDA_SUCCESS, 0)) Log(result);
    if (__builtin_expect(calls_are_traced.load(std::memory_order_relaxed), 0)) Trace(result);
    return result;
  }

  // Calls of each function that succeeded while they were counted.
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

// Of this thread; what it is, and whether it still can be used, the bodies see.
bool HasCurrentContext();

// The answer of a call that this version does not serve: says so once per name.
CUresult Refuse(CallId id);
// The same of a name that the description lacks; `said`: that name's own.
CUresult Refuse(const char* name, const char* reason, std::atomic<bool>* said);

// "CUDA_ERROR_…", nullptr for a number that is none; and its sentence.
const char* ErrorName(CUresult result);
const char* ErrorText(CUresult result);

}  // namespace longwire::shim
