// The start of this process's session.
#pragma once

#include <cuda.h>

#include "client-shim/session/session.h"

namespace longwire::shim {

// For cuInit: opens the session once. CUDA_ERROR_NO_DEVICE if no server is configured, or if none
// answers in time; the latter prints one message to stderr.
CUresult InitializeProcess(unsigned flags);

// Opens a session from parts that exist already, for tests within one process.
CUresult InitializeProcessWith(SessionParts parts);

}  // namespace longwire::shim
