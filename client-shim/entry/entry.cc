#include "client-shim/entry/entry.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "client-shim/connect/options.h"
#include "client-shim/context/current_context.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/session/checkpoint_lock.h"
#include "client-shim/stream/capture.h"
#include "client-shim/support/threads.h"
#include "client-shim/tracing/recorder.h"
#include "longwire/proc_table.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t Nanoseconds() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

// Of the trace: the first call's.
uint64_t TraceStart() {
  static const uint64_t start = Nanoseconds();
  return start;
}

// Whether the refusal of a call was said.
std::atomic<bool>* SaidOf(CallId id) {
  static std::atomic<bool> said[wire::kCallNumbers];
  return &said[std::min<size_t>(static_cast<size_t>(id), wire::kCallNumbers - 1)];
}

std::string CudaVersion(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Whether a call is refused because it is younger than the server's driver; says so.
bool BlameDriver(CallId id) {
  int has = DriverVersion();
  for (ClientSession* session : Sessions()) has = std::min(has, session->opened().driver_version);
  if (has >= DriverVersion()) return false;
  const auto table = ProcTable();
  const auto entry = std::ranges::find_if(
      table, [&](const ProcEntry& one) { return std::strcmp(one.symbol, CallName(id)) == 0; });
  if (entry == table.end() || entry->introduced <= has) return false;
  const std::string reason = "the server's driver is for " + CudaVersion(has) +
                             ", and this needs one for " + CudaVersion(entry->introduced) +
                             " or newer";
  LogError(std::string(CallName(id)) + " is not supported: " + reason);
  if (ProcessOptions().log && !SaidOf(id)->exchange(true)) {
    Say("%s is not supported: %s", CallName(id), reason.c_str());
  }
  return true;
}

}  // namespace

std::atomic<uint32_t> Entry::succeeded[wire::kCallNumbers];

void Entry::CheckSlowly() {
  if (calls_are_traced.load(std::memory_order_relaxed) &&
      (ProcessOptions().trace_calls || IsRecording())) {
    TraceStart();
    ThisThread().call_began = Nanoseconds();
    ThisThread().work_sent = CallNote::kNone;
  }
  if (CallBeforeInit(id_)) return;
  switch (CurrentProcessState()) {
    case ProcessState::kReady:
      break;
    case ProcessState::kTornDown:
      code_ = CUDA_ERROR_DEINITIALIZED;
      break;
    default:
      code_ = CUDA_ERROR_NOT_INITIALIZED;
      break;
  }
  // Host functions belong to work that is waited for before the lock is there.
  const bool waits = code_ == CUDA_SUCCESS && !ThisThread().runs_host_function;
  if (waits && !AllowedInHostFunction(id_)) AwaitCheckpointUnlock();
  // There are programs that ask in a host function whether an event has come to pass; the driver
  // need not refuse it.
  if (code_ == CUDA_SUCCESS && ThisThread().runs_host_function && !AllowedInHostFunction(id_)) {
    code_ = CUDA_ERROR_NOT_PERMITTED;
  }
  if (code_ == CUDA_SUCCESS && needs_ == Needs::kSession) code_ = ClientSession::over();
  if (code_ == CUDA_SUCCESS && CaptureUnsafe(id_)) code_ = RefuseUnsafeCall();
  if (code_ != CUDA_SUCCESS) Done(code_);
}

// A forked child, and a process that is ending, have said what they say.
CUresult Entry::WhenOver(CUresult result) const {
  bool tells = needs_ == Needs::kSession && CurrentProcessState() == ProcessState::kReady;
  return tells ? ClientSession::over() : result;
}

void Entry::Trace(CUresult result) const {
  if (result == CUDA_SUCCESS) succeeded[static_cast<size_t>(id_)].fetch_add(1);
  const ThreadState& thread = ThisThread();
  if (IsRecording() && thread.call_began != 0 && CurrentProcessState() == ProcessState::kReady) {
    TheRecorder().Call(
        {id_, result, thread.number, thread.call_began, Nanoseconds(), thread.work_sent});
  }
  if (!ProcessOptions().trace_calls) return;
  const char* name = ErrorName(result);
  const uint64_t began = ThisThread().call_began, now = Nanoseconds();
  // What cuInit began before there was a trace has no time.
  if (began == 0) {
    return Say("[%u] %s = %s", ThisThread().number, CallName(id_), name == nullptr ? "?" : name);
  }
  Say("[%u] %s = %s, at %.6f s for %.1f us", ThisThread().number, CallName(id_),
      name == nullptr ? "?" : name, static_cast<double>(began - TraceStart()) / 1e9,
      static_cast<double>(now - began) / 1e3);
}

void Entry::Log(CUresult result) const {
  // "Not yet" is an answer, and before cuInit nothing is allocated.
  if (result == CUDA_ERROR_NOT_READY || CurrentProcessState() != ProcessState::kReady) return;
  if (result == CUDA_ERROR_NOT_SUPPORTED && BlameDriver(id_)) return;
  const char* name = ErrorName(result);
  const char* text = ErrorText(result);
  const std::string why = result == CUDA_ERROR_OUT_OF_MEMORY ? TakeLackReason() : "";
  LogError(std::string(CallName(id_)) + " gave " + (name == nullptr ? "?" : name) + ": " +
           (text == nullptr ? "no such error" : text) + (why.empty() ? "" : "; ") + why);
}

bool HasCurrentContext() { return !ThisThread().contexts.empty(); }

CUresult Refuse(CallId id) { return Refuse(CallName(id), CallRefusal(id), SaidOf(id)); }

CUresult Refuse(const char* name, const char* reason, std::atomic<bool>* said) {
  if (CurrentProcessState() != ProcessState::kReady) return CUDA_ERROR_NOT_SUPPORTED;
  LogError(std::string(name) + " is not supported: " + reason);
  if (ProcessOptions().log && !said->exchange(true)) {
    Say("%s is not supported: %s", name, reason);
  }
  if (ProcessOptions().trace_calls) {
    Say("[%u] %s = CUDA_ERROR_NOT_SUPPORTED (%s)", ThisThread().number, name, reason);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace longwire::shim
