// The clock of devices that probes read (%globaltimer) on this host's, for the trace of the
// program: a kernel of ours reads it between two moments of this host. As with the server's clock,
// the best of a few round trips counts, with straight lines between.
#pragma once

#include <cstdint>

namespace longwire::shim {

struct Context;

// If the program is traced. Null: the calling thread's context, if it has one. Nothing if that
// cannot run kernels any more.
void CompareProbeClock(Context* context);

// A time of the device's clock on this host's, and how wrong that may be, in nanoseconds. False:
// the two were never compared.
struct ProbeTime {
  uint64_t at = 0, error = 0;
};
bool ToProbeTime(int device, uint64_t clock, ProbeTime* time);

}  // namespace longwire::shim
