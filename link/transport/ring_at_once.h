// Puts an event into a completion queue now. gRPC rounds a time up to the next millisecond and
// leaves an alarm that is not due yet to its timer threads, which sleep with slack
// (grpc_setup.cc): an alarm set for the present time rings up to a quarter of a second late.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

namespace longwire::transport {

inline void RingAtOnce(grpc::Alarm* alarm, grpc::CompletionQueue* queue, void* tag) {
  alarm->Set(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), tag);
}

}  // namespace longwire::transport
