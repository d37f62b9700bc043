// nvJitLink: two pieces of PTX, a kernel and the device function it calls, linked and loaded.
#include <cuda.h>
#include <nvJitLink.h>

#include <cstring>

#include "library_check.h"

static const char* const kKernel = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .entry fill(.param .u64 out) {
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  {
    .param .b32 value;
    .param .b32 result;
    st.param.b32 [value], %r1;
    call.uni (result), twice, (value);
    ld.param.b32 %r2, [result];
  }
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";
static const char* const kFunction = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .func (.param .b32 result) twice(.param .b32 value) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  shl.b32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
)";

int main() {
  CHECK(cudaFree(nullptr));
  const char* options[] = {"-arch=sm_90"};
  nvJitLinkHandle link;
  CHECK_LIBRARY(nvJitLinkCreate(&link, 1, options));
  CHECK_LIBRARY(
      nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, kKernel, std::strlen(kKernel) + 1, "kernel"));
  CHECK_LIBRARY(nvJitLinkAddData(link, NVJITLINK_INPUT_PTX, kFunction, std::strlen(kFunction) + 1,
                                 "function"));
  CHECK_LIBRARY(nvJitLinkComplete(link));
  size_t size = 0;
  CHECK_LIBRARY(nvJitLinkGetLinkedCubinSize(link, &size));
  std::vector<char> image(size);
  CHECK_LIBRARY(nvJitLinkGetLinkedCubin(link, image.data()));
  CHECK_LIBRARY(nvJitLinkDestroy(&link));
  CUmodule module;
  CUfunction function;
  CHECK_LIBRARY(cuModuleLoadData(&module, image.data()));
  CHECK_LIBRARY(cuModuleGetFunction(&function, module, "fill"));
  unsigned* out = ToDevice(std::vector<unsigned>(256));
  void* parameters[] = {&out};
  CHECK_LIBRARY(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  const std::vector<unsigned> values = ToHost(out, 256);
  for (unsigned i = 0; i < 256; ++i) EXPECT(values[i] == 2 * i, "place %u: %u", i, values[i]);
  CHECK_LIBRARY(cuModuleUnload(module));
  return Pass("nvjitlink_kernels");
}
