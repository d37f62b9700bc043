// Occupancy of clusters.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/code/loading.h"

namespace longwire::worker {

CUresult Do_lwOccupancyClusters(CallContext& context, const calls::lwOccupancyClusters& call,
                                calls::lwOccupancyClusters::Reply* reply) {
  CUfunction function = nullptr;
  LONGWIRE_TRY(context.Resolve(call.function, &function));
  LaunchAttributes attributes;
  if (!attributes.Set(call.attributes, false)) return CUDA_ERROR_NOT_SUPPORTED;
  CUlaunchConfig config = attributes.ConfigOf(call, nullptr);
  const DriverTable& driver = context.driver();
  int value = 0;
  CUresult result = call.potential
                        ? driver.cuOccupancyMaxPotentialClusterSize(&value, function, &config)
                        : driver.cuOccupancyMaxActiveClusters(&value, function, &config);
  reply->value = value;
  return result;
}

}  // namespace longwire::worker
