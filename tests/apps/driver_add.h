// A kernel that adds the module's variable `added`, 5, to each element.
#pragma once

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
