// The software device's reader of fat binaries: offsets, sizes and compressed texts are untrusted.
#include <cstdlib>
#include <string>

#include "softgpu/driver/module/fatbin.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string ptx, reason;
  const char* bytes = reinterpret_cast<const char*>(data);
  const CUresult result = softgpu::ExtractFromContainer(bytes, size, &ptx, &reason);
  if (result != CUDA_SUCCESS && reason.empty()) std::abort();
  return 0;
}
