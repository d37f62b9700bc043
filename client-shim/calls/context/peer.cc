// Peer access between contexts. The worker's driver decides; the memory that this client maps
// itself follows.
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/memory/peers.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

// Active, as the worker knows no others. A null handle is none here.
CUresult FindPair(CUcontext handle, Context** own, Context** peer) {
  LONGWIRE_TRY(RequireHealthyContext(own));
  Context* found = handle == nullptr ? nullptr : FindContext(handle);
  if (found == nullptr || found->number.load() == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *peer = found->home;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
  Context *own = nullptr, *peer = nullptr;
  CUresult result = FindPair(peerContext, &own, &peer);
  if (result == CUDA_SUCCESS) result = forward::cuCtxEnablePeerAccess(peer->handle, Flags);
  if (result == CUDA_SUCCESS) AddPeer(own, peer);
  return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  Context *own = nullptr, *peer = nullptr;
  CUresult result = FindPair(peerContext, &own, &peer);
  // What was queued before may still use it.
  if (result == CUDA_SUCCESS) result = SynchronizeContext(own);
  if (result == CUDA_SUCCESS) result = forward::cuCtxDisablePeerAccess(peer->handle);
  if (result == CUDA_SUCCESS) RemovePeer(own, peer);
  return result;
}

}  // namespace longwire::shim::hand
