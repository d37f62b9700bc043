// Peer access between contexts. The worker's driver decides; the memory that this client maps
// itself follows.
#include <algorithm>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
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
  if (result == CUDA_SUCCESS && own->session != peer->session) {
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  }
  if (result == CUDA_SUCCESS) result = forward::cuCtxEnablePeerAccess(peer->handle, Flags);
  if (result == CUDA_SUCCESS) AddPeer(own, peer);
  return result;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
  Context *own = nullptr, *peer = nullptr;
  CUresult result = FindPair(peerContext, &own, &peer);
  if (result == CUDA_SUCCESS && own->session != peer->session) {
    return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  }
  // What was queued before may still use it.
  if (result == CUDA_SUCCESS) result = SynchronizeContext(own);
  if (result == CUDA_SUCCESS) result = forward::cuCtxDisablePeerAccess(peer->handle);
  if (result == CUDA_SUCCESS) RemovePeer(own, peer);
  return result;
}

namespace {

constexpr auto kLastLinkAttribute = CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;

// Whether both are devices of one server; sets *result for those that are not devices.
bool AtOneServer(CUdevice one, CUdevice other, CUresult* result) {
  const Device *first = FindDevice(one), *second = FindDevice(other);
  const bool known = first != nullptr && second != nullptr;
  *result = known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  return known && first->session == second->session;
}

}  // namespace

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return CanAccessPeer(canAccessPeer, dev, peerDev);
}

// Between servers there is no link: every attribute is 0.
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
  CUresult result;
  if (AtOneServer(srcDevice, dstDevice, &result)) {
    return forward::cuDeviceGetP2PAttribute(value, attrib, srcDevice, dstDevice);
  }
  if (result != CUDA_SUCCESS) return result;
  if (attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK || attrib > kLastLinkAttribute) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int* capabilities,
                                          const CUatomicOperation* operations, unsigned int count,
                                          CUdevice srcDevice, CUdevice dstDevice) {
  CUresult result;
  if (AtOneServer(srcDevice, dstDevice, &result)) {
    return forward::cuDeviceGetP2PAtomicCapabilities(capabilities, operations, count, srcDevice,
                                                     dstDevice);
  }
  if (result != CUDA_SUCCESS) return result;
  if (operations == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  std::fill_n(capabilities, count, 0u);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
