// A driver without a device that ends the process when it is given a handle that it has not given
// out, as NVIDIA's might. It copies nothing: addresses are the client's, and anything.
#pragma once

#include "server/worker/support/driver.h"

namespace longwire::fuzz {

DriverTable StrictDriver();

// Of the last session.
void ForgetHandles();

}  // namespace longwire::fuzz
