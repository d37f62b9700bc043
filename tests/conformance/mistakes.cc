// What callers get wrong: nothing, other kinds of handles, handles of what is gone, no context.
#include "check.h"

namespace conformance {
namespace {

// A handle of one kind where another one belongs. What the driver of a device would crash of is
// left out: only what both libraries answer can be compared.
void WithoutContext() {
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUarray array = nullptr;
  size_t free = 0, total = 0;
  CODE(cuMemAlloc(&address, 16));
  CODE(cuMemFree(16));
  CODE(cuMemGetInfo(&free, &total));
  CODE(cuStreamCreate(&stream, 0));
  CODE(cuEventCreate(&event, 0));
  CODE(cuModuleLoadData(&module, kKernels));
  CODE(cuMemcpyHtoD(16, &total, 8));
  CODE(cuMemsetD8(16, 0, 8));
  CODE(cuCtxSynchronize());
  CODE(cuStreamSynchronize(nullptr));
  CODE(cuStreamQuery(nullptr));
  const CUDA_ARRAY_DESCRIPTOR flat = {4, 4, CU_AD_FORMAT_FLOAT, 1};
  CODE(cuArrayCreate(&array, &flat));
  void* pinned = nullptr;
  CODE(cuMemHostAlloc(&pinned, 16, 0));
  CUfunc_cache cache;
  CODE(cuCtxGetCacheConfig(&cache));
  unsigned flags = 0;
  CODE(cuCtxGetFlags(&flags));
  CODE(cuLaunchHostFunc(
      nullptr, [](void*) {}, nullptr));
}

void BeforeInit() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  CODE(cuDeviceGet(&device, 0));
  CODE(cuCtxGetCurrent(&context));
  CODE(cuCtxCreate(&context, nullptr, 0, 0));
  CODE(cuMemAlloc(&address, 16));
  CODE(cuCtxSynchronize());
  CODE(cuStreamQuery(nullptr));
  const char* name = nullptr;
  CODE(cuGetErrorName(CUDA_SUCCESS, &name));
  CODE(cuGetErrorName(static_cast<CUresult>(123456), &name));
}

void Lookups() {
  for (const char* name : {"cuMemAlloc", "cuMemAlloc_v2", "cuNoSuchFunction", "", "cuInit"}) {
    for (const int version : {2000, 3020, 12000, 13000, 99000}) {
      for (const unsigned long long flags : {0ull, 1ull, 2ull, 4ull}) {
        void* found = nullptr;
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        const CUresult result = cuGetProcAddress(name, &found, version, flags, &status);
        std::printf("lookup %s %d %llu = code %d found %d status %d\n", name, version, flags,
                    result, found != nullptr,
                    result == CUDA_SUCCESS ? static_cast<int>(status) : -1);
      }
    }
  }
}

}  // namespace

void Mistakes() {
  BeforeInit();
  CODE(cuInit(0));
  Lookups();
  WithoutContext();
  InContext in;
  CUcontext gone = nullptr;
  CODE(cuCtxCreate(&gone, nullptr, 0, 0));
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CODE(cuMemAlloc(&memory, 64));
  CODE(cuStreamCreate(&stream, 0));
  CODE(cuCtxDestroy(gone));
  CODE(cuMemsetD8(memory, 0, 4));
  CODE(cuMemFree(memory));
  CODE(cuCtxSetCurrent(gone));
  CODE(cuCtxPushCurrent(gone));
}

}  // namespace conformance
