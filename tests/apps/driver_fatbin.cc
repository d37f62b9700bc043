// The driver API with a fat binary that nvcc wrote, as a module and as a library.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "driver_program.h"

// The file's bytes, linked into the program; KERNELS_FATBIN is the path at build time.
asm(".section .rodata\n.balign 16\nkernels_fatbin:\n.incbin \"" KERNELS_FATBIN
    "\"\n.byte 0\n.text\n");
extern "C" const char kernels_fatbin[];
asm(".section .rodata\nkernels_fatbin_end:\n.text\n");
extern "C" const char kernels_fatbin_end[];

// As a file that the program names.
static void LoadFile() {
  char path[] = "/tmp/longwire-fatbin-XXXXXX";
  const int descriptor = mkstemp(path);
  EXPECT(descriptor >= 0, "no file can be made in /tmp");
  close(descriptor);
  std::ofstream(path, std::ios::binary).write(kernels_fatbin, kernels_fatbin_end - kernels_fatbin);
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoad(&module, path));
  unlink(path);
  RunScale(module);
  CHECK_DRIVER(cuModuleUnload(module));
  EXPECT(cuModuleLoad(&module, path) == CUDA_ERROR_FILE_NOT_FOUND, "a file that is gone");
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
