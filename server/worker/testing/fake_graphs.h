// Graphs of kernels on the fake driver: each node is launched as a kernel of its own, in the order
// in which the nodes were added.
#pragma once

#include "server/worker/support/driver.h"

namespace longwire::worker::testing {

void FillGraphs(DriverTable& table);

}  // namespace longwire::worker::testing
