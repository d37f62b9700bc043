// A driver without a device that ends the process when it is given a handle that it has not given
// out, or memory of the host's that is not there, as NVIDIA's might. Every result is set. It copies
// nothing to or from devices: addresses there are the client's, and anything.
#pragma once

#include "server/worker/support/driver.h"

namespace longwire::fuzz {

DriverTable StrictDriver();

// From now on every `interval`-th call fails with this code; 0: none does.
void FailCalls(unsigned interval, CUresult code);

// Of the last session.
void ForgetHandles();

}  // namespace longwire::fuzz
