// What needs a current context and has none, with arguments that are right otherwise.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "check.h"

namespace conformance {
namespace {

void AskForMemory() {
  CUdeviceptr address = 0;
  size_t pitch = 0;
  void* pinned = nullptr;
  static char own[8192];
  CODE(cuMemAllocPitch(&address, &pitch, 100, 4, 4));
  CODE(cuMemAllocManaged(&address, 100, CU_MEM_ATTACH_GLOBAL));
  CODE(cuMemAllocHost(&pinned, 100));
  CODE(cuMemHostRegister(own, sizeof own, 0));
  CODE(cuMemAllocAsync(&address, 100, nullptr));
  CODE(cuMemFreeAsync(16, nullptr));
  CUmemoryPool pool = nullptr;
  CODE(cuDeviceGetDefaultMemPool(&pool, 0));
  CODE(cuMemAllocFromPoolAsync(&address, 100, pool, nullptr));
}

void AskForArrays() {
  CUarray array = nullptr;
  CUmipmappedArray levels = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR shape = {};
  shape.Width = shape.Height = 16;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  CODE(cuArray3DCreate(&array, &shape));
  CODE(cuMipmappedArrayCreate(&levels, &shape, 2));
}

void CopyOnHost() {
  char from[64] = {}, to[64];
  CUDA_MEMCPY2D flat = {};
  flat.srcMemoryType = flat.dstMemoryType = CU_MEMORYTYPE_HOST;
  flat.srcHost = from;
  flat.dstHost = to;
  flat.srcPitch = flat.dstPitch = 8;
  flat.WidthInBytes = flat.Height = 8;
  CODE(cuMemcpy2D(&flat));
  CODE(cuMemcpy2DUnaligned(&flat));
  CODE(cuMemcpy2DAsync(&flat, nullptr));
  CUDA_MEMCPY3D deep = {};
  deep.srcMemoryType = deep.dstMemoryType = CU_MEMORYTYPE_HOST;
  deep.srcHost = from;
  deep.dstHost = to;
  deep.srcPitch = deep.dstPitch = deep.srcHeight = deep.dstHeight = 4;
  deep.WidthInBytes = deep.Height = deep.Depth = 4;
  CODE(cuMemcpy3D(&deep));
  CODE(cuMemcpy3DAsync(&deep, nullptr));
}

void Code(CUlibrary library) {
  CUmodule module = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  CODE(cuLibraryGetModule(&module, library));
  CODE(cuLibraryGetGlobal(&address, &bytes, library, "counter"));
  CODE(cuLibraryGetKernel(&kernel, library, "Fill"));
  CODE(cuKernelGetFunction(&function, kernel));
  char path[] = "/tmp/conformance.XXXXXX";
  const int file = mkstemp(path);
  if (write(file, kKernels, std::strlen(kKernels)) > 0) CODE(cuModuleLoad(&module, path));
  close(file);
  unlink(path);
}

// What there is nothing to do for is looked at, or not.
void DoNothing() {
  CUDA_MEMCPY2D flat = {};
  CUDA_MEMCPY3D deep = {};
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  unsigned type = 0;
  void* place = &type;
  static char own[64];
  CUmodule module = nullptr;
  CODE(cuMemcpy2D(&flat));
  CODE(cuMemcpy2DAsync(&flat, nullptr));
  CODE(cuMemcpy3D(&deep));
  CODE(cuMemAllocHost(&place, 0));
  CODE(cuCtxResetPersistingL2Cache());
  CODE(cuPointerGetAttributes(0, &attribute, &place, 0));
  CODE(cuMemFree(0));
  CODE(cuMemFreeHost(own));
  CODE(cuMemHostUnregister(own));
  CODE(cuCtxPushCurrent(nullptr));
  CODE(cuModuleLoad(&module, "/no/such/file"));
  CODE(cuTexObjectDestroy(0));
}

}  // namespace

void Contextless() {
  CODE(cuInit(0));
  CUlibrary library = nullptr;
  CODE(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  AskForMemory();
  AskForArrays();
  CopyOnHost();
  DoNothing();
  Code(library);
  CODE(cuStreamAddCallback(
      nullptr, [](CUstream, CUresult, void*) {}, nullptr, 0));
  CODE(cuLibraryUnload(library));
}

}  // namespace conformance
