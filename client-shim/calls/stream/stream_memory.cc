// Values that a stream writes to memory or waits for there.
#include <span>

#include "base/try.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/memory/reach.h"
#include "client-shim/mirror/host_memory.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/host_values.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr unsigned kWriteFlags = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
constexpr unsigned kWaitFlags = CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH;

struct Operation {
  bool waits = false;
  uint64_t address = 0;
  uint64_t value = 0;
  unsigned flags = 0;
  uint32_t bytes = 0;  // 0: a barrier, which single operations need not
};

CUresult Check(Stream* stream, const Operation& operation) {
  const auto& [waits, address, value, flags, bytes] = operation;
  if (bytes == 0) return CUDA_SUCCESS;
  if (address % bytes != 0 || (flags & ~(waits ? kWaitFlags : kWriteFlags)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  HostRange host;
  if (FindHost(address, &host)) return CUDA_SUCCESS;
  LONGWIRE_TRY(CheckDeviceRange(address, bytes));
  return Reaches(stream->context->device, address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <class Call>
CUresult Submit(Stream* stream, const Operation& operation) {
  Where where;
  LONGWIRE_TRY(OpenWhere(stream, &where));
  Call call;
  call.address = operation.address;
  call.value = operation.value;
  call.flags = operation.flags;
  call.bytes = operation.bytes;
  DeviceWork work(stream);
  uint64_t position = where.session->Submit(where, call);
  return ClientSession::Queued(position);
}

CUresult Queue(Stream* stream, const Operation& operation) {
  const auto& [waits, address, value, flags, bytes] = operation;
  HostRange host;
  if (bytes == 0) return CUDA_SUCCESS;
  if (FindHost(address, &host)) {
    HostValueKind kind = waits ? HostValueKind::kWait : HostValueKind::kWrite;
    return QueueHostValue(stream, {kind, address, value, flags, bytes});
  }
  return waits ? Submit<calls::lwWaitValue>(stream, operation)
               : Submit<calls::lwWriteValue>(stream, operation);
}

// All are looked at before the first is queued.
CUresult CheckAndQueue(CUstream handle, std::span<const Operation> operations) {
  Stream* stream = nullptr;
  CUresult result = ResolveStream(handle, &stream);
  for (const Operation& operation : operations) {
    if (result == CUDA_SUCCESS) result = Check(stream, operation);
  }
  for (const Operation& operation : operations) {
    if (result == CUDA_SUCCESS) result = Queue(stream, operation);
  }
  return result;
}

CUresult Write(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned flags, uint32_t bytes) {
  const Operation operation = {false, addr, value, flags, bytes};
  return CheckAndQueue(stream, {&operation, 1});
}

CUresult Wait(CUstream stream, CUdeviceptr addr, uint64_t value, unsigned flags, uint32_t bytes) {
  const Operation operation = {true, addr, value, flags, bytes};
  return CheckAndQueue(stream, {&operation, 1});
}

bool Read(const CUstreamBatchMemOpParams& params, Operation* operation) {
  const auto& write = params.writeValue;
  const auto& wait = params.waitValue;
  switch (params.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      *operation = {false, write.address, write.value, write.flags, 4};
      return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      *operation = {false, write.address, write.value64, write.flags, 8};
      return true;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      *operation = {true, wait.address, wait.value, wait.flags, 4};
      return true;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      *operation = {true, wait.address, wait.value64, wait.flags, 8};
      return true;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    case CU_STREAM_MEM_OP_BARRIER:
      *operation = {};
      return true;
    default:
      return false;
  }
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
  constexpr unsigned kMaxOperations = 255;  // as documented
  if (flags != 0 || count > kMaxOperations) return CUDA_ERROR_INVALID_VALUE;
  if (paramArray == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  Operation operations[kMaxOperations];
  for (unsigned i = 0; i < count; ++i) {
    if (!Read(paramArray[i], &operations[i])) return CUDA_ERROR_INVALID_VALUE;
  }
  return CheckAndQueue(stream, {operations, count});
}

}  // namespace longwire::shim::hand
