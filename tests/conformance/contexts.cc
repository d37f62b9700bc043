// Contexts: the stack, the primary context, what a context keeps.
#include "check.h"

namespace conformance {
namespace {

void Limits() {
  for (int limit = 0; limit < CU_LIMIT_MAX + 1; ++limit) {
    size_t value = 0;
    const CUresult result = cuCtxGetLimit(&value, static_cast<CUlimit>(limit));
    std::printf("limit %d = code %d value %zu\n", limit, result, value);
  }
  size_t value = 0;
  CODE(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  CODE(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  VALUE(value);
  CODE(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20));
  CODE(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  VALUE(value);
  CODE(cuCtxSetLimit(static_cast<CUlimit>(77), 1));
  CODE(cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE));
}

void Configurations() {
  CUfunc_cache cache;
  CODE(cuCtxGetCacheConfig(&cache));
  VALUE(cache);
  CODE(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
  CODE(cuCtxGetCacheConfig(&cache));
  VALUE(cache);
  CODE(cuCtxSetCacheConfig(static_cast<CUfunc_cache>(17)));
  CUsharedconfig shared;
  CODE(cuCtxGetSharedMemConfig(&shared));
  VALUE(shared);
  CODE(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
  int least = 0, greatest = 0;
  CODE(cuCtxGetStreamPriorityRange(&least, &greatest));
  VALUE(least);
  VALUE(greatest);
  CODE(cuCtxGetStreamPriorityRange(nullptr, nullptr));
  unsigned flags = 99;
  CODE(cuCtxGetFlags(&flags));
  VALUE(flags);
  CODE(cuCtxSetFlags(CU_CTX_SCHED_YIELD));
  CODE(cuCtxGetFlags(&flags));
  VALUE(flags);
  CODE(cuCtxResetPersistingL2Cache());
}

void Primary(CUdevice device) {
  unsigned flags = 99;
  int active = -1;
  CODE(cuDevicePrimaryCtxGetState(device, &flags, &active));
  VALUE(flags);
  VALUE(active);
  CODE(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
  CUcontext one = nullptr, two = nullptr;
  CODE(cuDevicePrimaryCtxRetain(&one, device));
  CODE(cuDevicePrimaryCtxRetain(&two, device));
  VALUE(one == two);
  CODE(cuDevicePrimaryCtxGetState(device, &flags, &active));
  VALUE(flags);
  VALUE(active);
  CODE(cuCtxPushCurrent(one));
  CUdeviceptr memory = 0;
  CODE(cuMemAlloc(&memory, 1000));
  CODE(cuDevicePrimaryCtxReset(device));
  CODE(cuMemFree(memory));
  CODE(cuCtxPopCurrent(nullptr));
  CODE(cuDevicePrimaryCtxRelease(device));
  CODE(cuDevicePrimaryCtxRelease(device));
  CODE(cuDevicePrimaryCtxRelease(device));
  CODE(cuDevicePrimaryCtxRetain(&one, 99));
  CODE(cuDevicePrimaryCtxRetain(nullptr, device));
}

}  // namespace

void Contexts() {
  CODE(cuInit(0));
  CUdevice device = 0, current = -1;
  CUcontext found = nullptr;
  CODE(cuCtxGetCurrent(&found));
  VALUE(found == nullptr);
  CODE(cuCtxGetDevice(&current));
  CODE(cuCtxSynchronize());
  CODE(cuCtxPopCurrent(&found));
  CUcontext one = nullptr, two = nullptr;
  CODE(cuCtxCreate(&one, nullptr, 0, device));
  CODE(cuCtxCreate(&two, nullptr, CU_CTX_SCHED_SPIN, device));
  CODE(cuCtxCreate(&two, nullptr, 0x4000, device));
  CODE(cuCtxCreate(nullptr, nullptr, 0, device));
  CODE(cuCtxCreate(&found, nullptr, 0, 99));
  CODE(cuCtxGetCurrent(&found));
  VALUE(found == two);
  unsigned version = 0;
  CODE(cuCtxGetApiVersion(two, &version));
  CODE(cuCtxGetApiVersion(nullptr, &version));
  unsigned long long first_id = 0, second_id = 0;
  CODE(cuCtxGetId(one, &first_id));
  CODE(cuCtxGetId(two, &second_id));
  VALUE(first_id != second_id);
  CODE(cuCtxPushCurrent(one));
  CODE(cuCtxGetDevice(&current));
  VALUE(current);
  Limits();
  Configurations();
  CODE(cuCtxPopCurrent(&found));
  VALUE(found == one);
  CODE(cuCtxSetCurrent(nullptr));
  CODE(cuCtxGetCurrent(&found));
  CODE(cuCtxSetCurrent(two));
  CODE(cuCtxDestroy(two));
  CODE(cuCtxGetCurrent(&found));
  VALUE(found == nullptr);
  CODE(cuCtxSetCurrent(one));
  CODE(cuCtxSynchronize());
  CODE(cuCtxDestroy(one));
  CODE(cuCtxDestroy(nullptr));
  Primary(device);
}

}  // namespace conformance
