// The software device's reader of fat binaries: offsets, sizes and compressed texts are untrusted.
#include <cstdlib>
#include <cstring>
#include <string>

#include "softgpu/driver/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char* copy = static_cast<char*>(std::malloc(size == 0 ? 1 : size));
  std::memcpy(copy, data, size);
  std::string ptx, reason;
  const CUresult result = softgpu::ExtractFromContainer(copy, size, &ptx, &reason);
  if (result != CUDA_SUCCESS && reason.empty()) std::abort();
  std::free(copy);
  return 0;
}
