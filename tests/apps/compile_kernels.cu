// compile_kernels TEXT: compiles a kernel with TEXT in it by NVRTC, to PTX and to machine code,
// links PTX by nvJitLink, and prints a digest of each result. What the caches of both give back
// must be what they made.
#include <cuda.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include <cstdio>
#include <functional>
#include <string>

#include "library_check.h"

static void Show(const char* name, const std::string& image) {
  std::printf("%s: %zu bytes, %zx\n", name, image.size(), std::hash<std::string>()(image));
}

static std::string Compile(const std::string& source, const char* architecture) {
  nvrtcProgram program;
  CHECK_LIBRARY(nvrtcCreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr));
  CHECK_LIBRARY(nvrtcCompileProgram(program, 1, &architecture));
  bool machine_code = std::string(architecture).find("sm_") != std::string::npos;
  size_t size = 0;
  CHECK_LIBRARY(machine_code ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size));
  std::string image(size, '\0');
  CHECK_LIBRARY(machine_code ? nvrtcGetCUBIN(program, image.data())
                             : nvrtcGetPTX(program, image.data()));
  CHECK_LIBRARY(nvrtcDestroyProgram(&program));
  return image;
}

static std::string Link(const std::string& ptx) {
  nvJitLinkHandle link;
  const char* options[] = {"-arch=sm_90"};
  CHECK_LIBRARY(nvJitLinkCreate(&link, 1, options));
  CHECK_LIBRARY(nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, ptx.data(), ptx.size(), "kernel"));
  CHECK_LIBRARY(nvJitLinkComplete(link));
  size_t size = 0;
  CHECK_LIBRARY(nvJitLinkGetLinkedCubinSize(link, &size));
  std::string image(size, '\0');
  CHECK_LIBRARY(nvJitLinkGetLinkedCubin(link, image.data()));
  CHECK_LIBRARY(nvJitLinkDestroy(&link));
  return image;
}

int main(int argc, char** argv) {
  std::string text = argc > 1 ? argv[1] : "0";
  CHECK(cudaFree(nullptr));
  std::string source =
      "extern \"C\" __global__ void kernel(float* x) { x[threadIdx.x] += " + text + "; }";
  std::string ptx = Compile(source, "--gpu-architecture=compute_80");
  Show("PTX", ptx);
  Show("machine code", Compile(source, "--gpu-architecture=sm_90"));
  Show("linked", Link(ptx));
  CUmodule module;
  CUfunction function;
  CHECK_LIBRARY(cuModuleLoadData(&module, ptx.c_str()));
  CHECK_LIBRARY(cuModuleGetFunction(&function, module, "kernel"));
  float* x = ToDevice(std::vector<float>(32, 1));
  void* parameters[] = {&x};
  CHECK_LIBRARY(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
  std::printf("sum %g\n", ToHost(x, 32)[31]);
  return Pass("compile_kernels");
}
