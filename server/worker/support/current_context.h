// The driver's current context of each thread. A thread that has the context already does not ask
// the driver again.
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
  // First thing on each thread that calls the driver.
  void EnterThread();

 private:
  // `id`: a handle may come again after its context has ended.
  CUresult Set(CUcontext handle, uint32_t id);

  const DriverTable& driver_;
};

}  // namespace longwire::worker
