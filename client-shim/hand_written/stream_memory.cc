// Values that a stream writes to memory or waits for there.
#include <type_traits>

#include "client-shim/capture.h"
#include "client-shim/host_memory.h"
#include "client-shim/host_values.h"
#include "client-shim/mirrors.h"
#include "client-shim/peers.h"
#include "client-shim/pointers.h"
#include "client-shim/process.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

template <class Call>
CUresult Queue(CUstream handle, uint64_t address, uint64_t value, unsigned flags, uint32_t bytes) {
  Stream* stream = nullptr;
  CUresult result = ResolveStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (address % bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  HostRange host;
  if (FindHost(address, &host)) {
    bool waits = std::is_same_v<Call, calls::lwWaitValue>;
    HostValueKind kind = waits ? HostValueKind::kWait : HostValueKind::kWrite;
    return QueueHostValue(stream, {kind, address, value, flags, bytes});
  }
  result = CheckDeviceRange(address, bytes);
  if (result != CUDA_SUCCESS) return result;
  if (!Reaches(stream->context->device, address)) return CUDA_ERROR_INVALID_VALUE;
  Where where;
  result = OpenWhere(stream, &where);
  if (result != CUDA_SUCCESS) return result;
  Call call;
  call.address = address;
  call.value = value;
  call.flags = flags;
  call.bytes = bytes;
  DeviceWork work(stream);
  uint64_t position = TheSession().Submit(where, call);
  return position == Session::kNoPosition ? TheSession().over() : CUDA_SUCCESS;
}

constexpr unsigned kWriteFlags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
constexpr unsigned kWaitFlags = CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH;

CUresult Write(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned flags, uint32_t bytes) {
  if ((flags & ~kWriteFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  return Queue<calls::lwWriteValue>(stream, addr, value, flags, bytes);
}

CUresult Wait(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned flags, uint32_t bytes) {
  if ((flags & ~kWaitFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  return Queue<calls::lwWaitValue>(stream, addr, value, flags, bytes);
}

}  // namespace

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags) {
  return Write(stream, addr, value, flags, 4);
}
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
  return Wait(stream, addr, value, flags, 4);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned int flags) {
  return Write(stream, addr, value, flags, 8);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned int flags) {
  return Wait(stream, addr, value, flags, 8);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                               CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  constexpr unsigned kMost = 256;  // as documented
  if (flags != 0 || count > kMost || paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& one = paramArray[i];
    const auto& write = one.writeValue;
    const auto& wait = one.waitValue;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    switch (one.operation) {
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        result = Write(stream, write.address, write.value, write.flags, 4);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        result = Write(stream, write.address, write.value64, write.flags, 8);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        result = Wait(stream, wait.address, wait.value, wait.flags, 4);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        result = Wait(stream, wait.address, wait.value64, wait.flags, 8);
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        result = CUDA_SUCCESS;  // single operations are ordered already
        break;
      default:
        break;
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
