// Green contexts: what the calls take and refuse, and what belongs to whom.
#include "check.h"

namespace conformance {
namespace {

void Resources(CUdevice device, CUdevResource* whole) {
  CODE(cuDeviceGetDevResource(device, whole, CU_DEV_RESOURCE_TYPE_SM));
  VALUE(whole->type);
  VALUE(whole->sm.smCount);
  VALUE(whole->sm.minSmPartitionSize);
  VALUE(whole->sm.smCoscheduledAlignment);
  CODE(cuDeviceGetDevResource(99, whole, CU_DEV_RESOURCE_TYPE_SM));
  CODE(cuDeviceGetDevResource(device, nullptr, CU_DEV_RESOURCE_TYPE_SM));
  CODE(cuDeviceGetDevResource(device, whole, CU_DEV_RESOURCE_TYPE_INVALID));
  CODE(cuDeviceGetDevResource(device, whole, static_cast<CUdevResourceType>(99)));
  CODE(cuDeviceGetDevResource(device, whole, CU_DEV_RESOURCE_TYPE_SM));
}

void Split(const CUdevResource& whole, unsigned wanted, unsigned flags, unsigned least) {
  CUdevResource groups[4] = {}, rest = {};
  unsigned count = wanted;
  std::printf("split of %u by %u, flags %u\n", wanted, least, flags);
  if (CODE(cuDevSmResourceSplitByCount(groups, &count, &whole, &rest, flags, least)) !=
      CUDA_SUCCESS) {
    return;
  }
  VALUE(count);
  for (unsigned i = 0; i < count; ++i) VALUE(groups[i].sm.smCount);
  VALUE(rest.type);
  if (rest.type == CU_DEV_RESOURCE_TYPE_SM) VALUE(rest.sm.smCount);
}

void Splits(const CUdevResource& whole) {
  unsigned count = 0;
  CODE(cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, 0, 1));
  VALUE(count);
  CODE(cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, 0, whole.sm.smCount));
  VALUE(count);
  for (unsigned wanted : {0u, 1u, 2u, 4u}) Split(whole, wanted, 0, 8);
  Split(whole, 1, 0, 0);
  Split(whole, 1, 0, 9);
  Split(whole, 2, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 3);
  Split(whole, 1, CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE, 8);
  Split(whole, 1, 0x40, 8);
  Split(whole, 1, 0, whole.sm.smCount + 1);
  CODE(cuDevSmResourceSplitByCount(nullptr, nullptr, &whole, nullptr, 0, 1));
  CODE(cuDevSmResourceSplitByCount(nullptr, &count, nullptr, nullptr, 0, 1));
  CUdevResource none = {};
  CODE(cuDevSmResourceSplitByCount(nullptr, &count, &none, nullptr, 0, 1));
}

CUdevResourceDesc Descriptors(const CUdevResource& whole) {
  CUdevResource groups[2] = {}, again = {}, none = {};
  CUdevResourceDesc descriptor = nullptr;
  unsigned count = 2, one = 1;
  CODE(cuDevSmResourceSplitByCount(groups, &count, &whole, nullptr, 0, 8));
  CODE(cuDevSmResourceSplitByCount(&again, &one, &groups[0], nullptr, 0, 8));
  CODE(cuDevResourceGenerateDesc(nullptr, groups, 1));
  CODE(cuDevResourceGenerateDesc(&descriptor, nullptr, 1));
  CODE(cuDevResourceGenerateDesc(&descriptor, groups, 0));
  CODE(cuDevResourceGenerateDesc(&descriptor, &none, 1));
  CUdevResource mixed[] = {whole, groups[0]};
  CODE(cuDevResourceGenerateDesc(&descriptor, mixed, 2));
  CODE(cuDevResourceGenerateDesc(&descriptor, groups, 2));
  CODE(cuDevResourceGenerateDesc(&descriptor, groups, 1));
  return descriptor;
}

void Streams(CUgreenCtx green, CUcontext context, CUcontext primary) {
  CUstream made = nullptr, other = nullptr;
  CUgreenCtx of = nullptr;
  CUcontext found = nullptr;
  CODE(cuGreenCtxStreamCreate(&made, green, CU_STREAM_DEFAULT, 0));
  CODE(cuGreenCtxStreamCreate(nullptr, green, CU_STREAM_NON_BLOCKING, 0));
  CODE(cuGreenCtxStreamCreate(&made, green, CU_STREAM_NON_BLOCKING, -99));
  int priority = 99;
  CODE(cuStreamGetPriority(made, &priority));
  VALUE(priority);
  CODE(cuStreamGetGreenCtx(made, &of));
  VALUE(of == green);
  CODE(cuStreamGetGreenCtx(made, nullptr));
  CODE(cuStreamGetCtx_v2(made, &found, &of));
  VALUE(found == primary);
  VALUE(of == green);
  CODE(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CODE(cuStreamGetGreenCtx(other, &of));
  VALUE(of == nullptr);
  CODE(cuStreamDestroy(other));
  CODE(cuCtxPushCurrent(context));
  CODE(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CODE(cuStreamGetGreenCtx(other, &of));
  VALUE(of == green);
  CODE(cuStreamGetGreenCtx(nullptr, &of));
  VALUE(of == green);
  CODE(cuStreamGetGreenCtx(CU_STREAM_PER_THREAD, &of));
  CODE(cuStreamDestroy(other));
  CODE(cuCtxPopCurrent(nullptr));
  CODE(cuStreamDestroy(made));
}

void Contents(CUgreenCtx green, CUcontext context) {
  CUdevResource told = {};
  CODE(cuGreenCtxGetDevResource(green, &told, CU_DEV_RESOURCE_TYPE_SM));
  VALUE(told.sm.smCount);
  CODE(cuCtxGetDevResource(context, &told, CU_DEV_RESOURCE_TYPE_SM));
  VALUE(told.sm.smCount);
  CODE(cuGreenCtxGetDevResource(green, nullptr, CU_DEV_RESOURCE_TYPE_SM));
  CODE(cuGreenCtxGetDevResource(green, &told, static_cast<CUdevResourceType>(99)));
  unsigned long long id = 0;
  CODE(cuGreenCtxGetId(green, &id));
  VALUE(id != 0);
  CODE(cuGreenCtxGetId(green, nullptr));
  CODE(cuGreenCtxGetId(nullptr, &id));
  CUevent event = nullptr;
  CODE(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CODE(cuGreenCtxRecordEvent(green, event));
  CODE(cuEventSynchronize(event));
  CODE(cuGreenCtxWaitEvent(green, event));
  CODE(cuGreenCtxRecordEvent(green, nullptr));
  CODE(cuEventDestroy(event));
  // Memory made in one is used in the other.
  CUdeviceptr memory = 0;
  CODE(cuMemAlloc(&memory, 64));
  CODE(cuCtxPushCurrent(context));
  CODE(cuMemsetD8(memory, 7, 64));
  CODE(cuCtxSynchronize());
  VALUE(DigestOf(memory, 64));
  CODE(cuMemFree(memory));
  CODE(cuCtxPopCurrent(nullptr));
}

}  // namespace

void GreenContexts() {
  CUdevice device = 0;
  CUdevResource whole = {};
  CUcontext primary = nullptr, context = nullptr;
  CUgreenCtx green = nullptr;
  CODE(cuInit(0));
  CODE(cuDevicePrimaryCtxRetain(&primary, device));
  CODE(cuCtxSetCurrent(primary));
  Resources(device, &whole);
  Splits(whole);
  CUdevResourceDesc descriptor = Descriptors(whole);
  CODE(cuGreenCtxCreate(nullptr, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CODE(cuGreenCtxCreate(&green, descriptor, 99, CU_GREEN_CTX_DEFAULT_STREAM));
  CODE(cuGreenCtxCreate(&green, descriptor, device, 0));
  CODE(cuGreenCtxCreate(&green, nullptr, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CODE(cuGreenCtxCreate(&green, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM));
  CODE(cuCtxFromGreenCtx(&context, green));
  CODE(cuCtxFromGreenCtx(nullptr, green));
  VALUE(context != primary);
  Contents(green, context);
  Streams(green, context, primary);
  CODE(cuCtxSetCurrent(primary));
  CODE(cuGreenCtxDestroy(green));
  CODE(cuDevicePrimaryCtxRelease(device));
}

}  // namespace conformance
