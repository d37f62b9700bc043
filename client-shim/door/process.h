// The start of this process's session.
#pragma once

#include <cuda.h>

#include "client-shim/session/session.h"

namespace longwire::shim {

// What cuInit does: opens the session once. CUDA_ERROR_NO_DEVICE, silently, when no server is
// configured, and with one sentence on stderr when none answers in time.
CUresult InitializeProcess(unsigned flags);

// Makes a session of parts that are there already (tests within one process).
CUresult InitializeProcessWith(SessionParts parts);

}  // namespace longwire::shim
