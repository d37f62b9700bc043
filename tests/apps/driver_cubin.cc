// The driver API with a cubin, which holds one GPU's machine code and nothing else: it runs on that
// GPU, and any other device must refuse it clearly.
#include "driver_program.h"

// The file's bytes, linked into the program; KERNELS_CUBIN is the path at build time.
asm(".section .rodata\n.balign 16\nkernels_cubin:\n.incbin \"" KERNELS_CUBIN
    "\"\n.byte 0\n.text\n");
extern "C" const char kernels_cubin[];

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  CUmodule module = nullptr;
  const CUresult result = cuModuleLoadData(&module, kernels_cubin);
  const char *name = "?", *text = "?";
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  std::printf("loading the cubin: %d %s: %s\n", static_cast<int>(result), name, text);
  if (result == CUDA_SUCCESS) {
    RunScale(module);
  } else {
    EXPECT(result == CUDA_ERROR_NO_BINARY_FOR_GPU, "it was refused with another code");
    EXPECT(module == nullptr, "a refused module has a handle");
  }
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_cubin\n");
  return 0;
}
