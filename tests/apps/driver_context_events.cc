// Events of whole contexts, and the small questions about a context, its streams and its device:
// execution affinity, the streams' attributes, flushing remote writes, Windows' device number.
#include <cudaProfiler.h>

#include "driver_check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // cuProfilerInitialize

static CUcontext NewContext() {
  CUcontext context = nullptr;
  CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, 0));
  return context;
}

static CUstream NewStream() {
  CUstream stream = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

static unsigned Read(CUdeviceptr address) {
  unsigned value = 0;
  CUstream stream = NewStream();
  CHECK_DRIVER(cuMemcpyDtoHAsync(&value, address, sizeof value, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  CHECK_DRIVER(cuStreamDestroy(stream));
  return value;
}

// Three words of device memory, zero at first.
struct Words {
  CUdeviceptr flag = 0, from = 0, to = 0;
  Words() {
    CHECK_DRIVER(cuMemAlloc(&flag, 3 * sizeof(unsigned)));
    CHECK_DRIVER(cuMemsetD32(flag, 0, 3));
    CHECK_DRIVER(cuCtxSynchronize());
    from = flag + sizeof(unsigned);
    to = from + sizeof(unsigned);
  }
  // Work that cannot run before the flag is set.
  void WriteOnceFree(CUstream stream, unsigned value) const {
    CHECK_DRIVER(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_DRIVER(cuMemsetD32Async(from, value, 1, stream));
  }
  void Free(CUstream stream) const {
    CHECK_DRIVER(cuStreamWriteValue32(stream, flag, 1, 0));
    CHECK_DRIVER(cuStreamSynchronize(stream));
  }
};

// The event stands behind the work of all streams of its context.
static void RecordsAllStreams() {
  CUcontext context = NewContext();
  Words words;
  CUstream blocked = NewStream(), idle = NewStream(), later = NewStream(), frees = NewStream();
  CUevent event = nullptr;
  CHECK_DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK_DRIVER(cuMemsetD32Async(words.to, 0, 1, idle));
  words.WriteOnceFree(blocked, 5);
  CHECK_DRIVER(cuCtxRecordEvent(context, event));
  EXPECT(cuEventQuery(event) == CUDA_ERROR_NOT_READY, "the event did not wait for a stream");
  CHECK_DRIVER(cuStreamWaitEvent(later, event, 0));
  CHECK_DRIVER(cuMemcpyDtoDAsync(words.to, words.from, sizeof(unsigned), later));
  CHECK_DRIVER(cuStreamSynchronize(idle));
  words.Free(frees);
  CHECK_DRIVER(cuEventSynchronize(event));
  CHECK_DRIVER(cuStreamSynchronize(later));
  EXPECT(Read(words.to) == 5, "the copy ran before the work that the event stands behind");
  CHECK_DRIVER(cuCtxRecordEvent(context, event));  // of a context without work
  CHECK_DRIVER(cuEventSynchronize(event));

  CUcontext other = NewContext();
  EXPECT_OF_MISTAKE(cuCtxRecordEvent(other, event) == CUDA_ERROR_INVALID_HANDLE,
                    "another context's event");
  EXPECT_OF_MISTAKE(cuCtxRecordEvent(context, nullptr) == CUDA_ERROR_INVALID_HANDLE, "no event");
  EXPECT_OF_MISTAKE(
      cuCtxRecordEvent(reinterpret_cast<CUcontext>(0x1234), event) == CUDA_ERROR_INVALID_CONTEXT,
      "no context");
  CHECK_DRIVER(cuCtxDestroy(other));
  CHECK_DRIVER(cuCtxDestroy(context));
}

// All later work waits: of streams that are there, of new ones, of the default stream.
static void MakesAllStreamsWait(bool new_stream) {
  CUcontext first = NewContext();
  Words words;
  CUstream blocked = NewStream(), frees = NewStream();
  CUevent event = nullptr;
  CHECK_DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  words.WriteOnceFree(blocked, 7);
  CHECK_DRIVER(cuEventRecord(event, blocked));
  CUcontext second = NewContext();
  CUstream stream = NewStream();
  CHECK_DRIVER(cuCtxWaitEvent(second, event));
  CHECK_DRIVER(cuCtxWaitEvent(second, event));  // twice is as good as once
  if (new_stream) stream = NewStream();
  CHECK_DRIVER(cuMemcpyDtoDAsync(words.to, words.from, sizeof(unsigned), stream));
  CHECK_DRIVER(cuMemsetD32Async(words.from, 9, 1, nullptr));  // the copy has its value before
  for (int i = 0; i < 50; ++i) {
    EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY, "the copy did not wait");
    CHECK_DRIVER(cuCtxSetCurrent(first));
    CHECK_DRIVER(cuStreamSynchronize(frees));  // the first context's streams do not wait
    CHECK_DRIVER(cuCtxSetCurrent(second));
  }
  CHECK_DRIVER(cuCtxSetCurrent(first));
  CHECK_DRIVER(cuEventDestroy(event));  // whoever waits goes on waiting
  words.Free(frees);
  CHECK_DRIVER(cuCtxSetCurrent(second));
  CHECK_DRIVER(cuCtxSynchronize());
  const unsigned got = Read(words.to);
  EXPECT(got == 7 || got == 9, "the copy ran too early: it found %u", got);
  EXPECT(Read(words.from) == 9, "the default stream's memset is lost");
  EXPECT_OF_MISTAKE(cuCtxWaitEvent(second, event) == CUDA_ERROR_INVALID_HANDLE, "no event");
  CHECK_DRIVER(cuCtxDestroy(second));
  CHECK_DRIVER(cuCtxDestroy(first));
}

static void RefusesBesideCapture() {
  CUcontext context = NewContext();
  CUstream stream = NewStream();
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  CHECK_DRIVER(cuEventCreate(&event, 0));
  CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT(cuCtxRecordEvent(context, event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "capturing");
  EXPECT(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "broken");
  CHECK_DRIVER(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT(cuCtxWaitEvent(context, event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "capturing");
  EXPECT(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "broken");
  CHECK_DRIVER(cuCtxDestroy(context));
}

static void CopiesAttributes() {
  CUcontext context = NewContext();
  CUstream source = NewStream(), target = nullptr;
  CHECK_DRIVER(cuStreamCreateWithPriority(&target, CU_STREAM_NON_BLOCKING, 0));
  CUstreamAttrValue value = {};
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  CHECK_DRIVER(cuStreamSetAttribute(source, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  value = {};
  CHECK_DRIVER(cuStreamGetAttribute(target, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT(value.syncPolicy != CU_SYNC_POLICY_YIELD, "the policies are the same before the copy");
  CHECK_DRIVER(cuStreamCopyAttributes(target, source));
  CHECK_DRIVER(cuStreamGetAttribute(target, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT(value.syncPolicy == CU_SYNC_POLICY_YIELD, "the policy is %d", value.syncPolicy);
  CHECK_DRIVER(cuStreamCopyAttributes(target, NewStream()));  // of one that was given none
  CHECK_DRIVER(cuStreamCopyAttributes(NewStream(), NewStream()));
  CHECK_DRIVER(cuStreamGetAttribute(target, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT(value.syncPolicy != CU_SYNC_POLICY_YIELD, "the policy is %d", value.syncPolicy);
  const auto none = reinterpret_cast<CUstream>(0x1234);
  EXPECT_OF_MISTAKE(cuStreamCopyAttributes(target, none) == CUDA_ERROR_INVALID_HANDLE, "no stream");
  EXPECT_OF_MISTAKE(cuStreamCopyAttributes(none, source) == CUDA_ERROR_INVALID_HANDLE, "no stream");
  CUcontext other = NewContext();
  EXPECT(cuStreamCopyAttributes(target, NewStream()) != CUDA_SUCCESS, "another context's stream");
  CHECK_DRIVER(cuCtxDestroy(other));
  CHECK_DRIVER(cuCtxDestroy(context));
}

static void SmallQuestions() {
  CUexecAffinityParam affinity = {};
  EXPECT(
      cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT) == CUDA_ERROR_INVALID_CONTEXT,
      "there is no context yet");
  CUcontext context = NewContext();
  int supported = -1;
  CHECK_DRIVER(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
  const CUresult answer = cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT);
  EXPECT(answer == CUDA_SUCCESS || answer == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "affinity: %d",
         answer);
  EXPECT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX) != CUDA_SUCCESS,
         "no kind of affinity");
  CHECK_DRIVER(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                          CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
  EXPECT(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                    static_cast<CUflushGPUDirectRDMAWritesScope>(7)) ==
             CUDA_ERROR_INVALID_VALUE,
         "no scope");
  char luid[8] = "";
  unsigned mask = 0;
  EXPECT(cuDeviceGetLuid(luid, &mask, 0) == CUDA_ERROR_NOT_SUPPORTED, "Linux has no such number");
  EXPECT(cuDeviceGetLuid(luid, &mask, 99) == CUDA_ERROR_INVALID_DEVICE, "no device");
  EXPECT_OF_MISTAKE(cuDeviceGetLuid(nullptr, &mask, 0) == CUDA_ERROR_INVALID_VALUE,
                    "nowhere to write to");
  EXPECT(cuProfilerInitialize("", "", CU_OUT_CSV) == CUDA_ERROR_NOT_SUPPORTED, "removed long ago");
  CHECK_DRIVER(cuCtxDestroy(context));
}

int main() {
  CHECK_DRIVER(cuInit(0));
  SmallQuestions();
  RecordsAllStreams();
  MakesAllStreamsWait(false);
  MakesAllStreamsWait(true);
  RefusesBesideCapture();
  CopiesAttributes();
  std::printf("PASS driver_context_events\n");
  return 0;
}
