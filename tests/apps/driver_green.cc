// Green contexts: parts of a device split off, contexts made of them, their streams, and what they
// share with the primary context that they are parts of.
#include <cstring>

#include "driver_fatbin.h"
#include "driver_program.h"

static CUdevResource Whole(CUdevice device) {
  CUdevResource whole;
  CHECK_DRIVER(cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
  int count = 0;
  CHECK_DRIVER(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  EXPECT(whole.type == CU_DEV_RESOURCE_TYPE_SM, "type %d", whole.type);
  EXPECT(whole.sm.smCount == static_cast<unsigned>(count), "%u of %d", whole.sm.smCount, count);
  return whole;
}

static CUgreenCtx Make(CUdevice device, CUdevResource* resources, unsigned count) {
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  CHECK_DRIVER(cuDevResourceGenerateDesc(&descriptor, resources, count));
  CHECK_DRIVER(cuGreenCtxCreate(&green, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM));
  return green;
}

static void Splits(CUdevice device) {
  CUdevResource whole = Whole(device), rest, groups[64];
  unsigned possible = 0, count = 1;
  CHECK_DRIVER(cuDevSmResourceSplitByCount(nullptr, &possible, &whole, nullptr, 0, 1));
  EXPECT(possible >= 2, "the device makes %u groups", possible);
  CHECK_DRIVER(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest, 0, 1));
  EXPECT(count == 1 && groups[0].sm.smCount >= 1, "%u groups of %u", count, groups[0].sm.smCount);
  EXPECT(groups[0].sm.smCount + rest.sm.smCount == whole.sm.smCount, "multiprocessors are lost");
  count = 64;
  CHECK_DRIVER(cuDevSmResourceSplitByCount(groups, &count, &whole, nullptr, 0, 1));
  EXPECT(count == (possible < 64 ? possible : 64), "%u groups, not %u", count, possible);
  EXPECT(groups[0].sm.smCount == groups[1].sm.smCount, "groups of one split differ");

  CUdevResource changed = groups[0];
  CUdevResourceDesc descriptor = nullptr;
  EXPECT_OF_MISTAKE(cuDevResourceGenerateDesc(&descriptor, groups, 0) == CUDA_ERROR_INVALID_VALUE,
                    "none");
  changed = whole;
  changed.type = CU_DEV_RESOURCE_TYPE_INVALID;
  EXPECT(cuDevSmResourceSplitByCount(groups, &count, &changed, nullptr, 0, 1) ==
             CUDA_ERROR_INVALID_RESOURCE_TYPE,
         "no resource");
  count = 1;
  const CUresult many =
      cuDevSmResourceSplitByCount(groups, &count, &whole, nullptr, 0, whole.sm.smCount + 1);
  EXPECT(many != CUDA_SUCCESS || count == 0, "more than there are: %d, %u groups", many, count);
  EXPECT(cuDevSmResourceSplitByCount(groups, nullptr, &whole, nullptr, 0, 1) ==
             CUDA_ERROR_INVALID_VALUE,
         "no count");
  EXPECT(cuDeviceGetDevResource(99, &whole, CU_DEV_RESOURCE_TYPE_SM) == CUDA_ERROR_INVALID_DEVICE,
         "no device");
  EXPECT(cuDeviceGetDevResource(device, &whole, static_cast<CUdevResourceType>(7)) ==
             CUDA_ERROR_INVALID_RESOURCE_TYPE,
         "no type");
}

// Two green contexts and a stream of each.
struct Two {
  CUgreenCtx one = nullptr, two = nullptr;
  CUcontext context = nullptr, primary = nullptr;  // of the first, and what it is a part of
  CUstream first = nullptr, second = nullptr;
};

static Two MakeTwo(CUdevice device) {
  Two made;
  CUdevResource whole = Whole(device), groups[2], told;
  unsigned count = 2;
  CHECK_DRIVER(cuDevSmResourceSplitByCount(groups, &count, &whole, nullptr, 0, 1));
  made.one = Make(device, &groups[0], 1);
  made.two = Make(device, &groups[1], 1);
  CHECK_DRIVER(cuGreenCtxGetDevResource(made.two, &told, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT(told.sm.smCount == groups[1].sm.smCount, "%u multiprocessors", told.sm.smCount);
  CHECK_DRIVER(cuCtxFromGreenCtx(&made.context, made.one));
  CHECK_DRIVER(cuCtxGetDevResource(made.context, &told, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT(told.sm.smCount == groups[0].sm.smCount, "%u multiprocessors", told.sm.smCount);
  CHECK_DRIVER(cuDevicePrimaryCtxRetain(&made.primary, device));
  CHECK_DRIVER(cuCtxGetDevResource(made.primary, &told, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT(told.sm.smCount == whole.sm.smCount, "%u multiprocessors", told.sm.smCount);
  CHECK_DRIVER(cuGreenCtxStreamCreate(&made.first, made.one, CU_STREAM_NON_BLOCKING, 0));
  CHECK_DRIVER(cuGreenCtxStreamCreate(&made.second, made.two, CU_STREAM_NON_BLOCKING, -100));
  return made;
}

// What is asked while the first is current.
static void BelongsTogether(const Two& made) {
  unsigned long long id = 0, other_id = 0;
  CHECK_DRIVER(cuGreenCtxGetId(nullptr, &id));
  CHECK_DRIVER(cuGreenCtxGetId(made.two, &other_id));
  EXPECT(id != 0 && other_id != 0 && id != other_id, "ids %llu and %llu", id, other_id);
  CUgreenCtx of = nullptr;
  CUcontext found = nullptr;
  CHECK_DRIVER(cuStreamGetGreenCtx(made.second, &of));
  EXPECT(of == made.two, "another green context");
  CHECK_DRIVER(cuStreamGetGreenCtx(nullptr, &of));
  EXPECT(of == made.one, "the default stream is not the green context's");
  CHECK_DRIVER(cuStreamGetCtx_v2(made.first, &found, &of));
  EXPECT(found == made.primary && of == made.one, "the stream's contexts");
  CHECK_DRIVER(cuStreamGetCtx(made.first, &found));
  EXPECT(found == made.context, "the stream's context");
  EXPECT(cuStreamGetGreenCtx(CU_STREAM_PER_THREAD, &of) == CUDA_ERROR_INVALID_HANDLE,
         "a stream of the thread's own in a green context");
}

// The first one's work waits for a flag, the second one's for the first's, others for nothing.
static void WaitForEachOther(const Two& made) {
  CUdeviceptr flag = 0;
  CHECK_DRIVER(cuMemAlloc(&flag, 3 * sizeof(unsigned)));
  CHECK_DRIVER(cuMemsetD32(flag, 0, 3));
  CHECK_DRIVER(cuCtxSynchronize());
  CUevent event = nullptr;
  CHECK_DRIVER(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK_DRIVER(cuStreamWaitValue32(made.first, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  CHECK_DRIVER(cuMemsetD32Async(flag + 4, 5, 1, made.first));
  CHECK_DRIVER(cuGreenCtxRecordEvent(made.one, event));
  EXPECT(cuEventQuery(event) == CUDA_ERROR_NOT_READY, "the event is not behind the stream");
  CHECK_DRIVER(cuStreamSynchronize(made.second));  // is not held up
  CHECK_DRIVER(cuGreenCtxWaitEvent(made.two, event));
  CHECK_DRIVER(cuMemcpyDtoDAsync(flag + 8, flag + 4, sizeof(unsigned), made.second));
  EXPECT(cuStreamQuery(made.second) == CUDA_ERROR_NOT_READY, "the copy did not wait");
  CHECK_DRIVER(cuCtxSetCurrent(made.primary));
  CUstream outside = nullptr;
  CUgreenCtx of = nullptr;
  CHECK_DRIVER(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuStreamGetGreenCtx(outside, &of));
  EXPECT(of == nullptr, "a green context of a stream that has none");
  CHECK_DRIVER(cuStreamWriteValue32(outside, flag, 1, 0));
  CHECK_DRIVER(cuCtxSynchronize());  // of the primary context: all of its green ones, too
  unsigned value = 0;
  CHECK_DRIVER(cuMemcpyDtoH(&value, flag + 8, sizeof value));
  EXPECT(value == 5, "the copy found %u", value);
  CHECK_DRIVER(cuStreamDestroy(outside));
  CHECK_DRIVER(cuEventDestroy(event));
  CHECK_DRIVER(cuMemFree(flag));
}

static void RunsApart(CUdevice device) {
  Two made = MakeTwo(device);
  CHECK_DRIVER(cuCtxSetCurrent(made.context));
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, kernels_fatbin));
  RunScale(module);  // with memory, a module and a stream made while a green context is current
  BelongsTogether(made);
  WaitForEachOther(made);
  CHECK_DRIVER(cuStreamDestroy(made.second));
  CHECK_DRIVER(cuGreenCtxDestroy(made.one));
  CHECK_DRIVER(cuGreenCtxDestroy(made.two));
  EXPECT(cuStreamQuery(made.first) == CUDA_ERROR_CONTEXT_IS_DESTROYED, "a stream of what is gone");
  EXPECT(cuStreamDestroy(made.first) == CUDA_ERROR_CONTEXT_IS_DESTROYED, "the same");
  CHECK_DRIVER(cuModuleUnload(module));
  CHECK_DRIVER(cuDevicePrimaryCtxRelease(device));
}

static void Refuses(CUdevice device) {
  CUdevResource whole = Whole(device), told;
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr, none = reinterpret_cast<CUgreenCtx>(0x1234);
  CUstream stream = nullptr;
  CUcontext context = nullptr;
  CUevent event = nullptr;
  unsigned long long id = 0;
  CHECK_DRIVER(cuDevResourceGenerateDesc(&descriptor, &whole, 1));
  EXPECT(cuGreenCtxCreate(&green, descriptor, device, 0) == CUDA_ERROR_INVALID_VALUE, "no flag");
  EXPECT(cuGreenCtxCreate(&green, descriptor, 99, CU_GREEN_CTX_DEFAULT_STREAM) ==
             CUDA_ERROR_INVALID_DEVICE,
         "no device");
  EXPECT_OF_MISTAKE(cuGreenCtxCreate(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM) ==
                        CUDA_ERROR_INVALID_VALUE,
                    "no descriptor");
  EXPECT_OF_MISTAKE(cuGreenCtxGetId(nullptr, &id) == CUDA_ERROR_INVALID_CONTEXT, "none is current");
  EXPECT_OF_MISTAKE(cuGreenCtxDestroy(none) == CUDA_ERROR_INVALID_CONTEXT, "no green context");
  EXPECT_OF_MISTAKE(cuCtxFromGreenCtx(&context, none) == CUDA_ERROR_INVALID_CONTEXT,
                    "no green context");
  EXPECT_OF_MISTAKE(
      cuGreenCtxGetDevResource(none, &told, CU_DEV_RESOURCE_TYPE_SM) == CUDA_ERROR_INVALID_CONTEXT,
      "no green context");
  EXPECT_OF_MISTAKE(cuGreenCtxStreamCreate(&stream, none, CU_STREAM_NON_BLOCKING, 0) ==
                        CUDA_ERROR_INVALID_CONTEXT,
                    "no green context");
  green = Make(device, &whole, 1);
  EXPECT(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0) == CUDA_ERROR_INVALID_VALUE,
         "a blocking stream");
  EXPECT_OF_MISTAKE(cuGreenCtxRecordEvent(green, event) == CUDA_ERROR_INVALID_HANDLE, "no event");
  EXPECT_OF_MISTAKE(cuGreenCtxWaitEvent(none, event) == CUDA_ERROR_INVALID_CONTEXT,
                    "no green context");
  CHECK_DRIVER(cuCtxFromGreenCtx(&context, green));
  EXPECT_OF_MISTAKE(cuCtxDestroy(context) == CUDA_ERROR_INVALID_CONTEXT,
                    "a green context as a context");
  CHECK_DRIVER(cuCtxSetCurrent(context));
  CHECK_DRIVER(cuGreenCtxDestroy(green));
  CUdeviceptr memory = 0;
  EXPECT_OF_MISTAKE(cuMemAlloc(&memory, 16) == CUDA_ERROR_CONTEXT_IS_DESTROYED,
                    "memory of what is gone");
  CHECK_DRIVER(cuCtxSetCurrent(nullptr));
}

int main() {
  CUdevice device = 0;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  Splits(device);
  RunsApart(device);
  RunsApart(device);  // what is gone left nothing behind
  Refuses(device);
  std::puts("PASS driver_green");
  return 0;
}
