// What the kinds of driver_carried.cc have in common: a kernel that adds 5 to each element, and
// memory with a model on the host.
#pragma once

#include <string>
#include <vector>

#include "driver_check.h"

static const char kAdd[] = R"(
.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 added = 5;
.visible .entry Add(.param .u64 memory, .param .u32 count) {
  .reg .pred %p;
  .reg .b32 %r<7>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [memory];
  ld.param.u32 %r0, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p bra DONE;
  mul.wide.u32 %rd1, %r4, 4;
  add.u64 %rd2, %rd0, %rd1;
  ld.global.u32 %r5, [%rd2];
  ld.global.u32 %r6, [added];
  add.u32 %r5, %r5, %r6;
  st.global.u32 [%rd2], %r5;
DONE:
  ret;
}
)";

constexpr unsigned kCount = 1024, kBlock = 256;

struct Kernel {
  CUfunction add = nullptr;
  explicit Kernel(const void* image) {
    CUmodule module = nullptr;
    CHECK_DRIVER(cuModuleLoadData(&module, image));
    CHECK_DRIVER(cuModuleGetFunction(&add, module, "Add"));
  }
  void Launch(CUdeviceptr memory, CUstream stream) const {
    unsigned count = kCount;
    void* parameters[] = {&memory, &count};
    CHECK_DRIVER(
        cuLaunchKernel(add, kCount / kBlock, 1, 1, kBlock, 1, 1, 0, stream, parameters, nullptr));
  }
};

struct Memory {
  CUdeviceptr address = 0;
  std::vector<unsigned> model;

  explicit Memory(unsigned first) : model(kCount) {
    for (unsigned i = 0; i < kCount; ++i) model[i] = first + i * 7;
    CHECK_DRIVER(cuMemAlloc(&address, kCount * sizeof(unsigned)));
    CHECK_DRIVER(cuMemcpyHtoD(address, model.data(), kCount * sizeof(unsigned)));
  }
  void Added() {
    for (unsigned& one : model) one += 5;
  }
  void Expect(const char* what) const {
    std::vector<unsigned> found(kCount);
    CHECK_DRIVER(cuMemcpyDtoH(found.data(), address, kCount * sizeof(unsigned)));
    for (unsigned i = 0; i < kCount; ++i) {
      EXPECT(found[i] == model[i], "%s: element %u is %u, not %u", what, i, found[i], model[i]);
    }
  }
};
