// The addresses that the driver's library gets when it leaves the choice to the system: one after
// the other in a range that nobody else uses, instead of wherever the process has room. So the
// driver puts what a session makes where it puts it in every other worker, and the session can move
// (docs/moving.md). What else the worker maps, and that its own addresses are randomised, stays as
// it is.
#pragma once

namespace longwire::worker {

// From now on. Before the driver is loaded.
void FixDriverMappings();

}  // namespace longwire::worker
