// Events: flags, records, waits, times.
#include "check.h"

namespace conformance {

void Events() {
  InContext in;
  CUevent event = nullptr, later = nullptr, untimed = nullptr;
  CUstream stream = nullptr, other = nullptr;
  CODE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CODE(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  for (const unsigned flags : {0u, 1u, 2u, 3u, 4u, 6u, 8u, 16u}) {
    CUevent made = nullptr;
    const CUresult result = cuEventCreate(&made, flags);
    std::printf("event flags %u = code %d\n", flags, result);
    if (result == CUDA_SUCCESS) cuEventDestroy(made);
  }
  CODE(cuEventCreate(nullptr, 0));
  CODE(cuEventCreate(&event, 0));
  CODE(cuEventCreate(&later, 0));
  CODE(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  float milliseconds = -1;
  CODE(cuEventQuery(event));
  CODE(cuEventSynchronize(event));
  CODE(cuEventElapsedTime(&milliseconds, event, later));
  CODE(cuStreamWaitEvent(stream, event, 0));
  CODE(cuEventRecord(event, stream));
  CODE(cuEventSynchronize(event));
  CODE(cuEventQuery(event));
  CODE(cuEventRecord(later, other));
  CODE(cuEventSynchronize(later));
  CODE(cuEventElapsedTime(&milliseconds, event, later));
  VALUE(milliseconds >= 0);
  CODE(cuEventElapsedTime(&milliseconds, event, event));
  VALUE(milliseconds == 0);
  CODE(cuEventElapsedTime(nullptr, event, later));
  CODE(cuEventRecord(untimed, nullptr));
  CODE(cuEventSynchronize(untimed));
  CODE(cuEventElapsedTime(&milliseconds, event, untimed));
  CODE(cuEventRecordWithFlags(event, stream, 0));
  CODE(cuEventRecordWithFlags(event, stream, 8));
  CODE(cuStreamWaitEvent(other, event, 0));
  CODE(cuStreamWaitEvent(other, event, 8));
  CODE(cuStreamSynchronize(other));

  // A wait that holds a stream until another one writes.
  CUdeviceptr memory = 0;
  CODE(cuMemAlloc(&memory, 64));
  CODE(cuMemsetD8(memory, 0, 64));
  CODE(cuCtxSynchronize());
  CODE(cuStreamWaitValue32(stream, memory, 1, CU_STREAM_WAIT_VALUE_EQ));
  CODE(cuEventRecord(event, stream));
  CODE(cuEventQuery(event));
  CODE(cuEventElapsedTime(&milliseconds, later, event));
  CODE(cuStreamWaitEvent(other, event, 0));
  CODE(cuMemsetD8Async(memory + 32, 9, 4, other));
  CODE(cuStreamQuery(other));
  CODE(cuStreamWriteValue32(nullptr, memory, 1, 0));
  CODE(cuStreamSynchronize(other));
  CODE(cuEventQuery(event));
  VALUE(DigestOf(memory, 64));

  CODE(cuEventDestroy(event));
  CODE(cuEventDestroy(event));
  CODE(cuEventQuery(event));
  CODE(cuEventRecord(event, stream));
  CODE(cuEventDestroy(nullptr));
  CODE(cuEventDestroy(later));
  CODE(cuEventDestroy(untimed));
  CODE(cuStreamDestroy(stream));
  CODE(cuStreamDestroy(other));
  CODE(cuMemFree(memory));
}

}  // namespace conformance
