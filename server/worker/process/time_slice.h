// The hardware time slice of this process's channel groups (TSGs): how long the GPU runs one of
// them before it turns to another process's. A short slice on best-effort workers lets a
// latency-critical one in quickly even while a long kernel runs.
//
// NVIDIA's driver has no call for it; its kernel module has, for the objects that a process made
// itself, without privileges (class and command numbers are those of the published kernel module,
// ctrla06c.h). The driver library makes these objects through ioctl, which this process's own
// definition sees first. Where the module is another one, or there is none, nothing happens.
#pragma once

#include <cstdint>

namespace longwire::worker {

// For all groups of the process, those it makes later too; 0 gives them back the slices that they
// were made with. A call takes some 200 µs a group. Returns how many groups took it: 0 where there
// are none, as on the software device.
int SetTimeSlice(uint32_t microseconds);

}  // namespace longwire::worker
