// Limits of a context: for stacks, heap and printing the driver allocates memory.
#include <algorithm>

#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/memory/array_bytes.h"

namespace longwire::worker {

CUresult Do_cuCtxSetLimit(CallContext& context, const calls::cuCtxSetLimit& call,
                          calls::cuCtxSetLimit::Reply*) {
  const DriverTable& driver = context.driver();
  auto limit = static_cast<CUlimit>(call.limit);
  if (context.context() == nullptr) return driver.cuCtxSetLimit(limit, call.value);
  const Context& of = *context.context();
  Charges& charges = context.session().charges();
  const Charges::Key key{Charges::Kind::kLimit, static_cast<uint64_t>(limit), of.id};
  uint64_t wanted = LimitBytes(driver, of.driver_device, limit, call.value);
  Charge charge;
  LONGWIRE_TRY(charges.Take(of.device, wanted - std::min(wanted, charges.Kept(key)), &charge));
  CUresult result = driver.cuCtxSetLimit(limit, call.value);
  charges.Keep(key, std::move(charge));
  // What it is now: the driver rounds, or has refused, or another thread has set it meanwhile.
  charges.Correct(key, [&] {
    size_t now = 0;
    bool known = driver.cuCtxGetLimit(&now, limit) == CUDA_SUCCESS;
    return known ? LimitBytes(driver, of.driver_device, limit, now) : wanted;
  });
  return result;
}

}  // namespace longwire::worker
