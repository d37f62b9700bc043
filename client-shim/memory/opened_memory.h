// Memory of other programs that is open here. The chunks of a token are borrowed and mapped as a
// whole, once, as long as a piece of them is open.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "client-shim/context/context.h"
#include "client-shim/memory/sharing.h"

namespace longwire::shim {

// Opening a piece again gives the same address; openings are counted. The devices that can have
// peer access to the memory's device reach it; CUDA_ERROR_PEER_ACCESS_UNSUPPORTED if the context's
// device is not one of them.
CUresult OpenShared(const SharedPiece& piece, Context* context, uint64_t* address);
// CUDA_ERROR_INVALID_VALUE if no open piece starts there. No work may use it any more.
CUresult CloseShared(uint64_t address);
// *reaches: whether the device's work may access the address. False if it is in no opened memory.
bool FindOpenedAccess(uint64_t address, int device, bool* reaches);
bool IsOpenedPiece(uint64_t address);
bool IsOpen(const SharedPiece& piece);

}  // namespace longwire::shim
