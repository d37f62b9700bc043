// The driver API with PTX text: compiled when it is loaded; wrong text is refused with the
// compiler's own words.
#include <cstdint>
#include <cstring>

#include "driver_program.h"

static const char kPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 offset = 3;
.visible .entry Scale(.param .u64 input, .param .u64 output, .param .u32 factor,
                      .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [count];
  setp.ge.s32 %p1, %r4, %r5;
  @%p1 bra done;
  ld.param.u64 %rd1, [input];
  ld.param.u64 %rd2, [output];
  ld.param.u32 %r6, [factor];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.s32 %rd5, %r4, 4;
  add.s64 %rd6, %rd3, %rd5;
  add.s64 %rd7, %rd4, %rd5;
  ld.global.u32 %r7, [%rd6];
  ld.global.u32 %r8, [offset];
  mad.lo.s32 %r9, %r7, %r6, %r8;
  st.global.u32 [%rd7], %r9;
done:
  ret;
}
)";

static const char kWrong[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry Wrong( { this is no PTX at all }
)";

int main() {
  CUdevice device = 0;
  CUcontext context = OpenContext(&device);
  CUmodule module = nullptr;
  CHECK_DRIVER(cuModuleLoadData(&module, kPtx));
  RunScale(module);
  CHECK_DRIVER(cuModuleUnload(module));

  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(uintptr_t{sizeof log})};
  const CUresult refused = cuModuleLoadDataEx(&module, kWrong, 2, options, values);
  EXPECT(refused == CUDA_ERROR_INVALID_PTX, "wrong PTX gave %d", static_cast<int>(refused));
  EXPECT(std::strlen(log) > 0, "the compiler said nothing about wrong PTX");
  CHECK_DRIVER(cuModuleLoadData(&module, kPtx));
  RunScale(module);
  CHECK_DRIVER(cuCtxDestroy(context));
  std::printf("PASS driver_ptx\n");
  return 0;
}
