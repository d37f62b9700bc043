// Occupancy of clusters.
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/code/loading.h"

namespace longwire::worker {

CUresult Do_lwOccupancyClusters(CallContext& context, const calls::lwOccupancyClusters& call,
                                calls::lwOccupancyClusters::Reply* reply) {
  CUfunction function = nullptr;
  CUresult result = context.Resolve(call.function, &function);
  if (result != CUDA_SUCCESS) return result;
  LaunchAttributes attributes;
  if (!attributes.Set(call.attributes, false)) return CUDA_ERROR_NOT_SUPPORTED;
  CUlaunchConfig config = attributes.ConfigOf(call, nullptr);
  const DriverTable& driver = context.driver();
  int value = 0;
  result = call.potential ? driver.cuOccupancyMaxPotentialClusterSize(&value, function, &config)
                          : driver.cuOccupancyMaxActiveClusters(&value, function, &config);
  reply->value = value;
  return result;
}

}  // namespace longwire::worker
