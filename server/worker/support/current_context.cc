#include "server/worker/support/current_context.h"

#include "server/worker/support/crash_report.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {
namespace {

// Sessions and threads do not mix, but a test may run several sessions from one thread.
struct OfThread {
  const CurrentContext* session = nullptr;
  CUcontext context = nullptr;
  uint32_t id = 0;
};
thread_local OfThread of_thread;

}  // namespace

CUresult CurrentContext::Set(const Context& context) { return Set(context.handle, context.id); }

CUresult CurrentContext::Set(CUcontext handle, uint32_t id) {
  if (of_thread.session == this && of_thread.context == handle && of_thread.id == id) {
    return CUDA_SUCCESS;
  }
  CUresult result = driver_.cuCtxSetCurrent(handle);
  if (result == CUDA_SUCCESS) of_thread = {this, handle, id};
  return result;
}

CUresult CurrentContext::SetNone() {
  of_thread = {};
  return driver_.cuCtxSetCurrent(nullptr);
}

void CurrentContext::EnterThread() {
  ReportOverflows();
  of_thread = {};
  // Captures of the client are begun relaxed and nothing of ours may spoil them.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver_.cuThreadExchangeStreamCaptureMode(&mode);
}

}  // namespace longwire::worker
