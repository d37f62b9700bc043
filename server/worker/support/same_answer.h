// Whether a call that a new worker has run again was answered as before.
#pragma once

#include <cstddef>
#include <span>

#include "longwire/call_ids.h"

namespace longwire::worker {

// For all that device code or later calls may build on. What compilers say is for people, and
// differs from run to run: texts in which their times stand, CU_JIT_WALL_TIME. So is a context's
// number (cuCtxGetId), which hangs on the device's; the client goes on giving the first.
bool IsSameAnswer(CallId call, std::span<const std::byte> before, std::span<const std::byte> now);

}  // namespace longwire::worker
