// Other programs' memory, opened here: borrowed chunks are mapped whole, once for each token, as
// long as one piece of them is open.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/context.h"
#include "client-shim/sharing.h"

namespace longwire::shim {

// Opening a piece again gives the same address, and counts.
CUresult OpenShared(const SharedPiece& piece, Context* context, uint64_t* address);
// INVALID_VALUE: no piece that starts there is open. No work may still use it.
CUresult CloseShared(uint64_t address);
bool IsOpenedPiece(uint64_t address);

}  // namespace longwire::shim
