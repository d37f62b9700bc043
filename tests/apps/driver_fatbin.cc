// The driver API with a fat binary that nvcc wrote, as a module and as a library.
#include "driver_fatbin.h"

#include <string>

#include "driver_program.h"

// As a file that the program names.
static void LoadFile() {
  CUmodule module = nullptr;
  std::string path;
  {
    const FatbinFile file;
    path = file.path;
    CHECK_DRIVER(cuModuleLoad(&module, path.c_str()));
  }
  RunScale(module);
  CHECK_DRIVER(cuModuleUnload(module));
  EXPECT(cuModuleLoad(&module, path.c_str()) == CUDA_ERROR_FILE_NOT_FOUND, "a file that is gone");
}

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, kernels_fatbin));
  RunScale(module);
  CHECK_DRIVER(cuModuleUnload(module));
  CHECK_DRIVER(cuModuleLoadFatBinary(&module, kernels_fatbin));
  RunScale(module);
  CHECK_DRIVER(cuModuleUnload(module));

  LoadFile();

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CHECK_DRIVER(
      cuLibraryLoadData(&library, kernels_fatbin, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK_DRIVER(cuLibraryGetKernel(&kernel, library, "Scale"));
  CHECK_DRIVER(cuLibraryGetModule(&module, library));
  RunScale(module);
  CHECK_DRIVER(cuLibraryUnload(library));
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_fatbin\n");
  return 0;
}
