// Uses what Longwire refuses, as a program would that asks no attribute first.
#include <cuda.h>

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
  return Pass("refused");
}
