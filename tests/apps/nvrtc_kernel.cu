// NVRTC: a kernel compiled while the program runs, to PTX and to machine code, loaded both ways.
#include <cuda.h>
#include <nvrtc.h>

#include <string>

#include "library_check.h"

static const char* const kSource = R"(
template <typename T> __global__ void axpy(T a, const T* x, T* y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += a * x[i];
}
)";
constexpr int kCount = 100000;

static void Run(CUmodule module, const char* name) {
  CUfunction function;
  CHECK_LIBRARY(cuModuleGetFunction(&function, module, name));
  std::vector<double> x(kCount), y(kCount, 1);
  for (int i = 0; i < kCount; ++i) x[i] = i;
  double a = 2.5, *device_x = ToDevice(x), *device_y = ToDevice(y);
  int count = kCount;
  void* parameters[] = {&a, &device_x, &device_y, &count};
  CHECK_LIBRARY(cuLaunchKernel(function, (kCount + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr,
                               parameters, nullptr));
  y = ToHost(device_y, kCount);
  for (int i = 0; i < kCount; ++i) EXPECT(y[i] == 1 + 2.5 * i, "place %d: %g", i, y[i]);
  CHECK_LIBRARY(cuModuleUnload(module));
}

static void Compile(const char* architecture, bool machine_code) {
  nvrtcProgram program;
  CHECK_LIBRARY(nvrtcCreateProgram(&program, kSource, "axpy.cu", 0, nullptr, nullptr));
  CHECK_LIBRARY(nvrtcAddNameExpression(program, "axpy<double>"));
  CHECK_LIBRARY(nvrtcCompileProgram(program, 1, &architecture));
  size_t size = 0;
  CHECK_LIBRARY(machine_code ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size));
  std::string image(size, '\0');
  CHECK_LIBRARY(machine_code ? nvrtcGetCUBIN(program, image.data())
                             : nvrtcGetPTX(program, image.data()));
  const char* name;
  CHECK_LIBRARY(nvrtcGetLoweredName(program, "axpy<double>", &name));
  std::printf("%s: %s\n", architecture, name);
  CUmodule module;
  CHECK_LIBRARY(cuModuleLoadData(&module, image.data()));
  Run(module, name);
  CHECK_LIBRARY(nvrtcDestroyProgram(&program));
}

int main() {
  CHECK(cudaFree(nullptr));
  Compile("--gpu-architecture=compute_80", false);
  Compile("--gpu-architecture=sm_90", true);
  return Pass("nvrtc_kernel");
}
