// The kernels of the second context, as text that every driver compiles. Their grids are of one
// dimension. Both begin with a head of two numbers: the lowest address at which the device had
// changed a byte to something else, and how many blocks or words were handled.
#pragma once

namespace longwire::worker {

// store_state(data, count): behind the head, StoredBlocks (whole_state.h). A byte that the device
// has changed to another value stays as it is. Only words with bytes of the mask are written, and
// only these bytes where the device has changed some of the word. take_state(data,
// ranges): behind the head, `ranges` times address, words, and where they go in `data`. Addresses
// are multiples of 8.
inline constexpr char kStateKernels[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry store_state(.param .u64 data, .param .u64 count)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<48>;
  ld.param.u64 %d0, [data];
  ld.param.u64 %d1, [count];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r0, %r1, %r2;
  mul.lo.u32 %r5, %r3, %r1;
  cvt.u64.u32 %d2, %r4;
  cvt.u64.u32 %d3, %r5;
  mov.u64 %d4, 0;
next:
  setp.ge.u64 %p, %d2, %d1;
  @%p bra end;
  mad.lo.u64 %d5, %d2, 144, %d0;
  add.u64 %d4, %d4, 1;
  add.u64 %d2, %d2, %d3;
  ld.global.v2.u64 {%d6, %d7}, [%d5+16];
  and.b64 %d8, %d6, 1;
  sub.u64 %d6, %d6, %d8;
  setp.eq.u64 %p, %d8, 0;
  @%p bra words;
  ld.global.v2.u64 {%d20, %d21}, [%d6];
  ld.global.v2.u64 {%d22, %d23}, [%d6+16];
  ld.global.v2.u64 {%d24, %d25}, [%d6+32];
  ld.global.v2.u64 {%d26, %d27}, [%d6+48];
  ld.global.v2.u64 {%d28, %d29}, [%d5+32];
  ld.global.v2.u64 {%d30, %d31}, [%d5+48];
  ld.global.v2.u64 {%d32, %d33}, [%d5+64];
  ld.global.v2.u64 {%d34, %d35}, [%d5+80];
  xor.b64 %d20, %d20, %d28;
  xor.b64 %d21, %d21, %d29;
  xor.b64 %d22, %d22, %d30;
  xor.b64 %d23, %d23, %d31;
  xor.b64 %d24, %d24, %d32;
  xor.b64 %d25, %d25, %d33;
  xor.b64 %d26, %d26, %d34;
  xor.b64 %d27, %d27, %d35;
  or.b64 %d20, %d20, %d21;
  or.b64 %d22, %d22, %d23;
  or.b64 %d24, %d24, %d25;
  or.b64 %d26, %d26, %d27;
  or.b64 %d20, %d20, %d22;
  or.b64 %d24, %d24, %d26;
  or.b64 %d20, %d20, %d24;
  setp.ne.u64 %p, %d20, 0;
  @%p bra words;
  ld.global.v2.u64 {%d28, %d29}, [%d5+96];
  ld.global.v2.u64 {%d30, %d31}, [%d5+112];
  ld.global.v2.u64 {%d32, %d33}, [%d5+128];
  ld.global.v2.u64 {%d34, %d35}, [%d5+144];
  st.global.v2.u64 [%d6], {%d28, %d29};
  st.global.v2.u64 [%d6+16], {%d30, %d31};
  st.global.v2.u64 [%d6+32], {%d32, %d33};
  st.global.v2.u64 [%d6+48], {%d34, %d35};
  bra next;
words:
  setp.eq.u64 %p, %d7, 0;
  @%p bra next;
  and.b64 %d9, %d7, 255;
  setp.eq.u64 %p, %d9, 0;
  @%p bra after;
  ld.global.u64 %d11, [%d6];
  ld.global.u64 %d12, [%d5+32];
  ld.global.u64 %d13, [%d5+96];
  setp.ne.u64 %p, %d11, %d12;
  @%p bra some;
  st.global.u64 [%d6], %d13;
  bra after;
some:
  mov.u64 %d10, %d6;
bytes:
  and.b64 %d14, %d9, 1;
  setp.eq.u64 %p, %d14, 0;
  @%p bra shift;
  and.b64 %d15, %d11, 255;
  and.b64 %d16, %d13, 255;
  setp.eq.u64 %p, %d15, %d16;
  @%p bra shift;
  and.b64 %d17, %d12, 255;
  setp.eq.u64 %p, %d15, %d17;
  @%p bra store;
  atom.global.min.u64 %d18, [%d0], %d10;
  bra shift;
store:
  cvt.u32.u64 %r6, %d16;
  st.global.u8 [%d10], %r6;
shift:
  add.u64 %d10, %d10, 1;
  shr.u64 %d11, %d11, 8;
  shr.u64 %d12, %d12, 8;
  shr.u64 %d13, %d13, 8;
  shr.u64 %d9, %d9, 1;
  setp.ne.u64 %p, %d9, 0;
  @%p bra bytes;
after:
  add.u64 %d6, %d6, 8;
  add.u64 %d5, %d5, 8;
  shr.u64 %d7, %d7, 8;
  bra words;
end:
  atom.global.add.u64 %d18, [%d0+8], %d4;
  ret;
}

.visible .entry take_state(.param .u64 data, .param .u64 ranges)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<24>;
  ld.param.u64 %d0, [data];
  ld.param.u64 %d1, [ranges];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r0, %r1, %r2;
  mul.lo.u32 %r5, %r3, %r1;
  cvt.u64.u32 %d2, %r4;
  cvt.u64.u32 %d3, %r5;
  mov.u64 %d4, 0;
  mov.u64 %d5, %d0;
range:
  setp.eq.u64 %p, %d1, 0;
  @%p bra end;
  ld.global.u64 %d6, [%d5+16];
  ld.global.u64 %d7, [%d5+24];
  ld.global.u64 %d8, [%d5+32];
  add.u64 %d8, %d8, %d0;
  mov.u64 %d9, %d2;
next:
  setp.ge.u64 %p, %d9, %d7;
  @%p bra after;
  shl.b64 %d10, %d9, 3;
  add.u64 %d11, %d6, %d10;
  ld.global.u64 %d12, [%d11];
  add.u64 %d13, %d8, %d10;
  st.global.u64 [%d13], %d12;
  add.u64 %d4, %d4, 1;
  add.u64 %d9, %d9, %d3;
  bra next;
after:
  add.u64 %d5, %d5, 24;
  sub.u64 %d1, %d1, 1;
  bra range;
end:
  atom.global.add.u64 %d16, [%d0+8], %d4;
  ret;
}
)";

}  // namespace longwire::worker
