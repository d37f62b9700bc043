// Uses what Longwire refuses, as a program would that asks no attribute first.
#include <cuda.h>
#include <dlfcn.h>

#include "check.h"

int main() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult query;
  CHECK(cudaFree(nullptr));
  CHECK(cudaGetDriverEntryPointByVersion("cuMulticastGetGranularity", &found, 12010,
                                         cudaEnableDefault, &query));
  EXPECT(found != nullptr && query == cudaDriverEntryPointSuccess, "the function is not found");
  CUmulticastObjectProp properties = {};
  properties.numDevices = 1;
  size_t bytes = 0;
  const CUresult refused = reinterpret_cast<decltype(&cuMulticastGetGranularity)>(found)(
      &bytes, &properties, CU_MULTICAST_GRANULARITY_MINIMUM);
  EXPECT(refused == CUDA_ERROR_NOT_SUPPORTED, "%d", refused);
  std::fprintf(stderr, "a word of its own\n");
  const cudaError_t graphics = cudaGraphicsUnregisterResource(nullptr);
  EXPECT(graphics != cudaSuccess, "there is no such resource");
  // FFmpeg asks for all names of cudaGL.h before it uses CUDA.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto* devices = reinterpret_cast<CUresult (*)(unsigned*, CUdevice*, unsigned, int)>(
      dlsym(driver, "cuGLGetDevices_v2"));
  EXPECT(devices != nullptr, "there is no such name");
  unsigned count = 0;
  CUdevice device = 0;
  const CUresult of_display = devices(&count, &device, 1, 1);
  EXPECT(of_display == CUDA_ERROR_NOT_SUPPORTED, "%d", of_display);
  return Pass("refused");
}
