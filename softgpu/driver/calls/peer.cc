// Peer access: which devices' kernels reach the memory of which others. Copies need none.
#include "softgpu/driver/device/peers.h"

namespace softgpu {
namespace {

CUresult FindPair(CUdevice one, CUdevice other) {
  LONGWIRE_TRY(Enter());
  bool both =
      Driver::Get().FindDevice(one) != nullptr && Driver::Get().FindDevice(other) != nullptr;
  return both ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult ResolvePeer(CUcontext handle, Context** own, Context** peer) {
  LONGWIRE_TRY(Enter(own));
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  LONGWIRE_TRY(ResolveContext(handle, peer));
  *peer = (*peer)->home;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuDeviceCanAccessPeer(int* can, CUdevice dev, CUdevice peer) {
  LONGWIRE_TRY(FindPair(dev, peer));
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *can = dev != peer;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice src,
                                 CUdevice dst) {
  LONGWIRE_TRY(FindPair(src, dst));
  if (src == dst) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:  // arrays are reached by copies alone
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Every device's kernels use the host's atomic instructions on the one memory that they all have.
CUresult cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities,
                                          const CUatomicOperation* operations, unsigned count,
                                          CUdevice src, CUdevice dst) {
  LONGWIRE_TRY(FindPair(src, dst));
  if (src == dst) return CUDA_ERROR_INVALID_DEVICE;
  if (capabilities == nullptr || operations == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < count; ++i) {
    if (operations[i] < 0 || operations[i] >= CU_ATOMIC_OPERATION_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  // Of floats only sums are atomic.
  constexpr unsigned kInteger = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED |
                                CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 |
                                CU_ATOMIC_CAPABILITY_SCALAR_64;
  for (unsigned i = 0; i < count; ++i) {
    capabilities[i] = kInteger;
    if (operations[i] == CU_ATOMIC_OPERATION_FLOAT_ADD) {
      capabilities[i] = kInteger & ~CU_ATOMIC_CAPABILITY_UNSIGNED;
    } else if (operations[i] > CU_ATOMIC_OPERATION_FLOAT_ADD) {
      capabilities[i] = 0;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
  Context *own, *peer;
  LONGWIRE_TRY(ResolvePeer(handle, &own, &peer));
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (own->device == peer->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  base::MutexLock lock(Driver::mutex);
  if (!own->peers.insert(peer).second) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  RefreshPeerAccess(own->device, peer->device);
  return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  Context *own, *peer;
  LONGWIRE_TRY(ResolvePeer(handle, &own, &peer));
  base::MutexLock lock(Driver::mutex);
  if (own->peers.erase(peer) == 0) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  RefreshPeerAccess(own->device, peer->device);
  return CUDA_SUCCESS;
}
