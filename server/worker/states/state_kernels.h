// The kernels of the second context, as text that every driver compiles. Their grids are of one
// dimension. Both begin with a head of two numbers: the lowest address at which the device had
// changed a byte to something else, and how many words were handled.
#pragma once

namespace longwire::worker {

// store_state(data, count): behind the head, StoredWords (whole_state.h). A byte that the device
// has changed to another value stays as it is. Only bytes of the mask are written. take_state(data,
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
  .reg .b64 %d<24>;
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
  mul.lo.u64 %d5, %d2, 24;
  add.u64 %d5, %d5, %d0;
  ld.global.u64 %d6, [%d5+16];
  ld.global.u64 %d7, [%d5+24];
  ld.global.u64 %d8, [%d5+32];
  shr.u64 %d9, %d6, 56;
  and.b64 %d10, %d6, 0x00ffffffffffffff;
  ld.global.u64 %d11, [%d10];
  setp.ne.u64 %p, %d9, 255;
  @%p bra bytes;
  setp.ne.u64 %p, %d11, %d8;
  @%p bra bytes;
  st.global.u64 [%d10], %d7;
  bra done;
bytes:
  and.b64 %d12, %d9, 1;
  setp.eq.u64 %p, %d12, 0;
  @%p bra shift;
  and.b64 %d13, %d11, 255;
  and.b64 %d14, %d7, 255;
  setp.eq.u64 %p, %d13, %d14;
  @%p bra shift;
  and.b64 %d15, %d8, 255;
  setp.eq.u64 %p, %d13, %d15;
  @%p bra store;
  atom.global.min.u64 %d16, [%d0], %d10;
  bra shift;
store:
  cvt.u32.u64 %r6, %d14;
  st.global.u8 [%d10], %r6;
shift:
  add.u64 %d10, %d10, 1;
  shr.u64 %d7, %d7, 8;
  shr.u64 %d8, %d8, 8;
  shr.u64 %d11, %d11, 8;
  shr.u64 %d9, %d9, 1;
  setp.ne.u64 %p, %d9, 0;
  @%p bra bytes;
done:
  add.u64 %d4, %d4, 1;
  add.u64 %d2, %d2, %d3;
  bra next;
end:
  atom.global.add.u64 %d16, [%d0+8], %d4;
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
