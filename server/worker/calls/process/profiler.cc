// What was measured of the session's calls.
#include <algorithm>

#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"

namespace longwire::worker {

CUresult Do_lwSpansMeasure(CallContext& context, const calls::lwSpansMeasure& call,
                           calls::lwSpansMeasure::Reply*) {
  context.session().spans().Measure(call.on);
  return CUDA_SUCCESS;
}

CUresult Do_lwSpansRead(CallContext& context, const calls::lwSpansRead& call,
                        calls::lwSpansRead::Reply* reply) {
  WorkerSession& session = context.session();
  for (uint64_t function : session.spans().Take(call.most, reply)) {
    auto found = session.functions.Find(function);
    if (found != nullptr) reply->names.push_back({function, context.Keep(found->name)});
  }
  reply->now = Spans::Now();
  return CUDA_SUCCESS;
}

// What the client says is shown for its own tenant alone.
CUresult Do_lwRoundTrip(CallContext& context, const calls::lwRoundTrip& call,
                        calls::lwRoundTrip::Reply*) {
  constexpr uint64_t kLongest = 3'600'000'000'000;  // an hour; sums stay far from their end
  uint64_t time = std::min(call.nanoseconds, kLongest);
  context.session().gates().Count(gates::Latency::kRoundTrip, time);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
