// A process that maps one chunk through the driver, as a worker does, and fills or checks it:
//   device_bytes DRIVER CHUNK_DESCRIPTOR BYTES fill|check VALUE
// Ends with 0, 1 if a byte is not VALUE, 2 if the driver refuses.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

void* library = nullptr;

// Calls the driver's function `name`; the program ends if it fails.
template <class... Arguments>
void Call(const char* name, Arguments... arguments) {
  auto function = reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(library, name));
  CUresult result = function != nullptr ? function(arguments...) : CUDA_ERROR_NOT_FOUND;
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "device_bytes: %s: error %d\n", name, result);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) std::fprintf(stderr, "device_bytes: %s\n", dlerror());
  if (library == nullptr) return 2;
  void* chunk = reinterpret_cast<void*>(std::atol(argv[2]));
  size_t bytes = std::strtoull(argv[3], nullptr, 10);
  int value = std::atoi(argv[5]);

  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  Call("cuInit", 0u);
  Call("cuDeviceGet", &device, 0);
  Call("cuDevicePrimaryCtxRetain", &context, device);
  Call("cuCtxSetCurrent", context);
  Call("cuMemImportFromShareableHandle", &handle, chunk, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  Call("cuMemAddressReserve", &address, bytes, size_t{0}, CUdeviceptr{0}, 0ULL);
  Call("cuMemMap", address, bytes, size_t{0}, handle, 0ULL);
  Call("cuMemSetAccess", address, bytes, &access, size_t{1});
  if (std::string(argv[4]) == "fill") {
    Call("cuMemsetD8_v2", address, static_cast<unsigned char>(value), bytes);
    Call("cuCtxSynchronize");
    return 0;
  }
  std::vector<char> host(bytes);
  Call("cuMemcpyDtoH_v2", host.data(), address, bytes);
  // By the library's function: a loop of our own takes seconds under a sanitizer.
  bool same = host[0] == static_cast<char>(value) &&
              std::memcmp(host.data(), host.data() + 1, bytes - 1) == 0;
  return same ? 0 : 1;
}
