// Contexts, streams, events and lookups by the calls from before CUDA 4 and 12: counted contexts,
// contexts with execution affinity, flags of primary contexts, versions of names.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include <cstring>

#include "driver_check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // cuCtxAttach, cuCtxDetach

static CUcontext Current() {
  CUcontext context = nullptr;
  CHECK_DRIVER(cuCtxGetCurrent(&context));
  return context;
}

static unsigned ApiVersion(CUcontext context) {
  unsigned version = 0;
  CHECK_DRIVER(cuCtxGetApiVersion(context, &version));
  return version;
}

static void PushAndPop(CUdevice device) {
  CUcontext first = nullptr, second = nullptr, popped = nullptr;
  // Beside a context of the first form, whose memory lies low, the driver makes none of this form.
  CHECK_DRIVER(cuCtxCreate_v2(&first, 0, device));
  CHECK_DRIVER(cuCtxCreate_v3(&second, nullptr, 0, CU_CTX_SCHED_YIELD, device));
  EXPECT(Current() == second, "the newest context is not current");
  unsigned flags = 0;
  CHECK_DRIVER(cuCtxGetFlags(&flags));
  EXPECT((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD, "the flags are %x", flags);
  EXPECT(ApiVersion(first) >= 2000 && ApiVersion(second) >= ApiVersion(first), "%u and %u",
         ApiVersion(first), ApiVersion(second));
  CHECK_DRIVER(cuCtxPopCurrent(&popped));
  EXPECT(popped == second && Current() == first, "popped %p, not %p", popped, second);
  CHECK_DRIVER(cuCtxPushCurrent(second));
  EXPECT(Current() == second, "what was pushed is not current");
  CHECK_DRIVER(cuCtxDestroy(second));
  EXPECT(Current() == first, "the one below is not current");
  EXPECT_OF_MISTAKE(cuCtxDestroy(second) != CUDA_SUCCESS, "destroyed twice");
  EXPECT_OF_MISTAKE(cuCtxPushCurrent(second) != CUDA_SUCCESS, "a destroyed context was pushed");
  CHECK_DRIVER(cuCtxDestroy(first));
  EXPECT(Current() == nullptr, "no context is left");
  EXPECT(cuCtxPopCurrent(&popped) == CUDA_ERROR_INVALID_CONTEXT, "popped from nothing");
  EXPECT(cuCtxCreate(nullptr, 0, device) == CUDA_ERROR_INVALID_VALUE, "nowhere to write to");
  EXPECT(cuCtxCreate(&first, 0, 99) == CUDA_ERROR_INVALID_DEVICE, "no device");
  EXPECT(cuCtxCreate_v3(&first, nullptr, 0, 1 << 20, device) == CUDA_ERROR_INVALID_VALUE, "flags");
  CUexecAffinityParam all = {};
  all.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
  all.param.smCount.val = 1;
  int supported = -1;
  CHECK_DRIVER(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
  const CUresult result = cuCtxCreate_v3(&first, &all, 1, 0, device);
  EXPECT(supported != 0 || result == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "affinity: %d", result);
  if (result == CUDA_SUCCESS) CHECK_DRIVER(cuCtxDestroy(first));
}

// Each attachment is a reference; with the last the context ends and its memory with it.
static void Attachments(CUdevice device) {
  CUcontext context = nullptr, same = nullptr, other = nullptr;
  EXPECT(cuCtxAttach(&same, 0) == CUDA_ERROR_INVALID_CONTEXT, "no context is current");
  CHECK_DRIVER(cuCtxCreate(&context, 0, device));
  CHECK_DRIVER(cuCtxAttach(&same, 0));
  EXPECT(same == context, "another context: %p", same);
  EXPECT(cuCtxAttach(&same, 1) == CUDA_ERROR_INVALID_VALUE, "flags must be zero");
  EXPECT(cuCtxAttach(nullptr, 0) == CUDA_ERROR_INVALID_VALUE, "nowhere to write to");
  CHECK_DRIVER(cuCtxCreate(&other, 0, device));
  EXPECT(cuCtxDetach(context) == CUDA_ERROR_INVALID_CONTEXT, "it is not current");
  CHECK_DRIVER(cuCtxDetach(other));
  EXPECT(Current() == context, "the detached context is still there");
  CHECK_DRIVER(cuCtxDetach(context));
  CUdeviceptr memory = 0;
  // One reference is left: it lives. NVIDIA's driver takes it off the thread all the same.
  EXPECT_OF_MISTAKE(cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS, "it has ended too early");
  EXPECT_OF_MISTAKE(cuCtxDetach(context) == CUDA_SUCCESS, "it has ended too early");
  EXPECT_OF_MISTAKE(Current() == nullptr, "the context outlived its last reference");
  EXPECT_OF_MISTAKE(cuCtxSetCurrent(context) != CUDA_SUCCESS, "it can be made current");
  EXPECT_OF_MISTAKE(cuCtxDetach(context) == CUDA_ERROR_INVALID_CONTEXT, "detached once too often");
}

static void Primary(CUdevice device) {
  CUcontext context = nullptr;
  unsigned flags = 0;
  int active = -1;
  CHECK_DRIVER(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  CHECK_DRIVER(cuDevicePrimaryCtxGetState(device, &flags, &active));
  EXPECT(active == 1 && (flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC, "%d, flags %x",
         active, flags);
  CHECK_DRIVER(cuCtxSetCurrent(context));
  CHECK_DRIVER(cuProfilerStart());
  CHECK_DRIVER(cuProfilerStop());
  CHECK_DRIVER(cuCtxSetCurrent(nullptr));
  CHECK_DRIVER(cuDevicePrimaryCtxRelease(device));
  CHECK_DRIVER(cuDevicePrimaryCtxGetState(device, &flags, &active));
  EXPECT(active == 0, "it is still active");
  EXPECT_OF_MISTAKE(cuDevicePrimaryCtxRelease(device) == CUDA_ERROR_INVALID_CONTEXT,
                    "once too often");
  EXPECT(cuDevicePrimaryCtxRelease(99) == CUDA_ERROR_INVALID_DEVICE, "no device");
  EXPECT(cuDevicePrimaryCtxSetFlags(device, 1 << 20) == CUDA_ERROR_INVALID_VALUE, "flags");
  EXPECT(cuDevicePrimaryCtxSetFlags(99, 0) == CUDA_ERROR_INVALID_DEVICE, "no device");
  CHECK_DRIVER(cuDevicePrimaryCtxSetFlags(device, 0));
}

static void StreamsAndEvents() {
  CUstream stream = nullptr;
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  CUcontext told = nullptr;
  CUgreenCtx green = reinterpret_cast<CUgreenCtx>(1);
  float milliseconds = -1;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuStreamGetCtx_v2(stream, &told, &green));
  EXPECT(told == Current() && green == nullptr, "context %p, green context %p", told, green);
  CHECK_DRIVER(cuEventCreate(&start, 0));
  CHECK_DRIVER(cuEventCreate(&end, 0));
  CHECK_DRIVER(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr memory = 0;
  CHECK_DRIVER(cuMemAlloc_v2(&memory, 1 << 20));
  CHECK_DRIVER(cuEventRecord(start, stream));
  CHECK_DRIVER(cuMemsetD8Async(memory, 1, 1 << 20, stream));
  CHECK_DRIVER(cuEventRecord(end, stream));
  CHECK_DRIVER(cuEventRecord(untimed, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  CHECK_DRIVER(cuEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0 && milliseconds < 60000, "%f ms", milliseconds);
  EXPECT(cuEventElapsedTime(&milliseconds, start, untimed) == CUDA_ERROR_INVALID_HANDLE, "no time");
  EXPECT_OF_MISTAKE(cuEventElapsedTime(nullptr, start, end) == CUDA_ERROR_INVALID_VALUE, "nowhere");
  CHECK_DRIVER(cuEventDestroy(end));
  EXPECT_OF_MISTAKE(cuEventDestroy(end) == CUDA_ERROR_INVALID_HANDLE, "destroyed twice");
  EXPECT_OF_MISTAKE(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE,
                    "no event");
  CHECK_DRIVER(cuStreamDestroy(stream));
  EXPECT_OF_MISTAKE(cuStreamDestroy(stream) != CUDA_SUCCESS, "destroyed twice");
  EXPECT_OF_MISTAKE(cuStreamQuery(stream) != CUDA_SUCCESS, "a destroyed stream answers");
  EXPECT(cuEventDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE, "no event");
  EXPECT(cuStreamDestroy(nullptr) != CUDA_SUCCESS, "the default stream");
  CHECK_DRIVER(cuEventDestroy(start));
  CHECK_DRIVER(cuEventDestroy(untimed));
  CHECK_DRIVER(cuMemFree_v2(memory));
}

// The lookup of CUDA 11: by name and version, without a word of why.
static void Lookups() {
  void* found = nullptr;
  CHECK_DRIVER(cuGetProcAddress("cuCtxGetDevice", &found, 11030, 0));
  CUdevice device = -1;
  const auto get_device = reinterpret_cast<CUresult (*)(CUdevice*)>(found);
  CHECK_DRIVER(get_device(&device));
  EXPECT(device == 0, "the device is %d", device);
  CHECK_DRIVER(cuGetProcAddress("cuEventElapsedTime", &found, 11030, 0));
  void* newer = nullptr;
  CHECK_DRIVER(cuGetProcAddress("cuEventElapsedTime", &newer, 13000, 0));
  EXPECT(found != newer, "two versions of one name have one address");
  EXPECT(cuGetProcAddress("cuNoSuchFunction", &found, 13000, 0) == CUDA_ERROR_NOT_FOUND, "a name");
  EXPECT(cuGetProcAddress("cuMemAllocAsync", &found, 11000, 0) == CUDA_ERROR_NOT_FOUND, "too old");
  EXPECT(cuGetProcAddress("cuInit", &found, 13000, 64) == CUDA_ERROR_INVALID_VALUE, "flags");
  EXPECT_OF_MISTAKE(cuGetProcAddress("cuInit", nullptr, 13000, 0) == CUDA_ERROR_INVALID_VALUE,
                    "nowhere");
}

int main() {
  CUcontext context = nullptr;
  CHECK_DRIVER(cuInit(0));
  PushAndPop(0);
  Primary(0);
  // In contexts of the first form the driver has no functions of later ones, and after them it
  // makes none of this form.
  CHECK_DRIVER(cuCtxCreate_v2(&context, 0, 0));
  StreamsAndEvents();
  Lookups();
  CHECK_DRIVER(cuCtxDestroy(context));
  Attachments(0);
  std::printf("PASS driver_older_contexts\n");
  return 0;
}
