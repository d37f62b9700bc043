// The driver API with a fat binary that nvcc wrote, as a module and as a library.
#include "driver_program.h"

// The file's bytes, linked into the program; KERNELS_FATBIN is the path at build time.
asm(".section .rodata\n.balign 16\nkernels_fatbin:\n.incbin \"" KERNELS_FATBIN
    "\"\n.byte 0\n.text\n");
extern "C" const char kernels_fatbin[];

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
