// The driver API as before CUDA 4: block shape, shared memory and parameters are set one by one,
// stay with the function from launch to launch, and each launch takes what is set by then.
#include <vector>

#include "driver_check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // that is what is tested here

// output[i] = base + factor * (threads of a block, read back through dynamic shared memory), with i
// the thread's number in a grid of two dimensions.
static const char kPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .shared .align 4 .b8 room[];
.visible .entry Fill(.param .u64 output, .param .u32 base, .param .f32 factor)
{
  .reg .b32 %r<16>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %ctaid.y;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %ntid.x;
  mov.u32 %r6, %tid.x;
  mad.lo.u32 %r7, %r4, %r5, %r6;
  mov.u32 %r8, room;
  shl.b32 %r9, %r6, 2;
  add.u32 %r10, %r8, %r9;
  st.shared.u32 [%r10], %r5;
  bar.sync 0;
  ld.shared.u32 %r11, [%r10];
  cvt.rn.f32.u32 %f1, %r11;
  ld.param.f32 %f2, [factor];
  mul.f32 %f3, %f1, %f2;
  cvt.rzi.u32.f32 %r12, %f3;
  ld.param.u32 %r13, [base];
  add.u32 %r14, %r12, %r13;
  ld.param.u64 %rd1, [output];
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r7, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r14;
  ret;
}
)";

constexpr int kThreads = 32, kBlocks = 6 * kThreads;

static void Expect(CUdeviceptr output, int filled, unsigned value) {
  std::vector<unsigned> host(kBlocks);
  CHECK_DRIVER(cuMemcpyDtoH(host.data(), output, kBlocks * sizeof(unsigned)));
  for (int i = 0; i < kBlocks; ++i) {
    const unsigned expected = i < filled ? value : 0;
    EXPECT(host[i] == expected, "element %d is %u, not %u", i, host[i], expected);
  }
  CHECK_DRIVER(cuMemsetD32(output, 0, kBlocks));
  CHECK_DRIVER(cuCtxSynchronize());  // the next launch may be in a stream that waits for nobody
}

static void ExpectRefusals(CUfunction fill) {
  const auto none = reinterpret_cast<CUfunction>(0x1234);
  EXPECT(cuFuncSetBlockShape(none, 1, 1, 1) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuFuncSetSharedSize(none, 1) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuParamSetSize(none, 1) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuParamSeti(none, 0, 1) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuParamSetf(none, 0, 1) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuLaunch(none) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuLaunchGrid(none, 1, 1) == CUDA_ERROR_INVALID_HANDLE, "no function");
  EXPECT(cuFuncSetBlockShape(fill, 0, 1, 1) == CUDA_ERROR_INVALID_VALUE, "no threads");
  EXPECT(cuFuncSetBlockShape(fill, 1024, 2, 1) == CUDA_ERROR_INVALID_VALUE, "2,048 threads");
  EXPECT(cuParamSetSize(fill, 1 << 20) == CUDA_ERROR_INVALID_VALUE, "1 MiB of parameters");
  EXPECT(cuParamSeti(fill, -4, 1) == CUDA_ERROR_INVALID_VALUE, "an offset below zero");
  EXPECT(cuParamSetf(fill, 1 << 20, 1) == CUDA_ERROR_INVALID_VALUE, "an offset of 1 MiB");
  EXPECT(cuParamSetv(fill, 0, nullptr, 8) == CUDA_ERROR_INVALID_VALUE, "no value");
}

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK_DRIVER(cuInit(0));
  CHECK_DRIVER(cuDeviceGet(&device, 0));
  CHECK_DRIVER(cuCtxCreate(&context, nullptr, 0, device));
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, kPtx));
  CHECK_DRIVER(cuModuleGetFunction(&fill, module, "Fill"));
  CUdeviceptr output = 0;
  CHECK_DRIVER(cuMemAlloc(&output, kBlocks * sizeof(unsigned)));
  CHECK_DRIVER(cuMemsetD32(output, 0, kBlocks));
  ExpectRefusals(fill);

  CHECK_DRIVER(cuParamSetv(fill, 0, &output, sizeof output));
  CHECK_DRIVER(cuParamSeti(fill, 8, 1000));
  CHECK_DRIVER(cuParamSetf(fill, 12, 2.0f));
  CHECK_DRIVER(cuParamSetSize(fill, 12));
  CHECK_DRIVER(cuFuncSetBlockShape(fill, kThreads, 1, 1));
  CHECK_DRIVER(cuFuncSetSharedSize(fill, kThreads * sizeof(unsigned)));
  EXPECT(cuLaunch(fill) == CUDA_ERROR_INVALID_VALUE, "the last parameter has no room");
  CHECK_DRIVER(cuParamSetSize(fill, 16));
  CHECK_DRIVER(cuLaunch(fill));
  Expect(output, kThreads, 1000 + 2 * kThreads);

  // What is set stays; one parameter changes. The launch before it has taken the old value.
  CHECK_DRIVER(cuLaunchGrid(fill, 3, 2));
  CHECK_DRIVER(cuParamSeti(fill, 8, 5));
  Expect(output, kBlocks, 1000 + 2 * kThreads);
  CUstream stream = nullptr;
  CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_DRIVER(cuLaunchGridAsync(fill, 2, 1, stream));
  CHECK_DRIVER(cuStreamSynchronize(stream));
  Expect(output, 2 * kThreads, 5 + 2 * kThreads);
  CHECK_DRIVER(cuLaunchGridAsync(fill, 1, 1, nullptr));
  Expect(output, kThreads, 5 + 2 * kThreads);

  EXPECT(cuLaunchGrid(fill, 0, 1) == CUDA_ERROR_INVALID_VALUE, "a grid without blocks");
  EXPECT(cuLaunchGrid(fill, 1, -1) == CUDA_ERROR_INVALID_VALUE, "a grid below zero");
  EXPECT(cuLaunchGridAsync(fill, 1, 1, reinterpret_cast<CUstream>(0x1234)) ==
             CUDA_ERROR_INVALID_HANDLE,
         "no stream");
  CHECK_DRIVER(cuFuncSetSharedSize(fill, 1 << 20));
  EXPECT(cuLaunch(fill) == CUDA_ERROR_INVALID_VALUE, "1 MiB of shared memory");
  CHECK_DRIVER(cuCtxSynchronize());
  CHECK_DRIVER(cuModuleUnload(module));
  EXPECT(cuLaunch(fill) == CUDA_ERROR_INVALID_HANDLE, "the module is unloaded");
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_older_launch\n");
  return 0;
}
