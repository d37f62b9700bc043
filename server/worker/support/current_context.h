// The driver's current context of each thread, cached: a thread that has the context already makes
// no driver call.
#pragma once

#include <cstdint>

#include "server/worker/support/driver.h"

namespace longwire::worker {

struct Context;

class CurrentContext {
 public:
  explicit CurrentContext(const DriverTable& driver) : driver_(driver) {}
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  CUresult Set(const Context& context);
  // A device's primary context, which the worker has retained itself.
  CUresult SetPrimary(CUcontext primary) { return Set(primary, 0); }
  CUresult SetNone();
  // Called first on each thread that calls the driver.
  void EnterThread();

 private:
  // `id`: the driver may reuse a handle after its context was destroyed.
  CUresult Set(CUcontext handle, uint32_t id);

  const DriverTable& driver_;
};

}  // namespace longwire::worker
