// Other programs' memory, opened here: borrowed chunks are mapped whole, once for each token, as
// long as one piece of them is open.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/context/context.h"
#include "client-shim/memory/sharing.h"

namespace longwire::shim {

// Opening a piece again gives the same address, and counts. All devices of the session reach it
// that can have peer access to its own; PEER_ACCESS_UNSUPPORTED if the context's is not among them.
CUresult OpenShared(const SharedPiece& piece, Context* context, uint64_t* address);
// INVALID_VALUE: no piece that starts there is open. No work may still use it.
CUresult CloseShared(uint64_t address);
// Whether the device's work may touch the address. False if it is in no opened memory.
bool FindOpenedAccess(uint64_t address, int device, bool* reaches);
bool IsOpenedPiece(uint64_t address);
bool IsOpen(const SharedPiece& piece);

}  // namespace longwire::shim
