// Memory operations in streams.
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

CUresult Do_lwWriteValue(CallContext& context, const calls::lwWriteValue& call,
                         calls::lwWriteValue::Reply*) {
  const DriverTable& driver = context.driver();
  CUstream stream = context.stream()->handle;
  if (call.bytes == 8) {
    return driver.cuStreamWriteValue64_v2(stream, call.address, call.value, call.flags);
  }
  if (call.bytes != 4) return CUDA_ERROR_INVALID_VALUE;
  return driver.cuStreamWriteValue32_v2(stream, call.address, static_cast<uint32_t>(call.value),
                                        call.flags);
}

CUresult Do_lwWaitValue(CallContext& context, const calls::lwWaitValue& call,
                        calls::lwWaitValue::Reply*) {
  const DriverTable& driver = context.driver();
  CUstream stream = context.stream()->handle;
  if (call.bytes == 8) {
    return driver.cuStreamWaitValue64_v2(stream, call.address, call.value, call.flags);
  }
  if (call.bytes != 4) return CUDA_ERROR_INVALID_VALUE;
  return driver.cuStreamWaitValue32_v2(stream, call.address, static_cast<uint32_t>(call.value),
                                       call.flags);
}

}  // namespace longwire::worker
