// The hardware time slice of this process's channel groups (TSGs): how long the GPU runs one of
// them before it switches to another process. With short slices for best-effort workers, a
// latency-critical one runs soon even during a long kernel.
//
// NVIDIA's driver has no call for it, but its kernel module has, for objects that the process has
// created, without privileges (class and command numbers are those of the published kernel module,
// ctrla06c.h). The driver library creates these objects through ioctl, which this process
// interposes with a definition of its own. With another kernel module, or none, nothing happens.
#pragma once

#include <cstdint>

namespace longwire::worker {

// Sets the slice of all groups of the process, also of later ones; 0 restores the original slices.
// A call takes some 200 µs per group. Returns the number of groups that were set: 0 if there are
// none, as on the software device.
int SetTimeSlice(uint32_t microseconds);

}  // namespace longwire::worker
