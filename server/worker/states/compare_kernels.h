// The kernels that find what the device has changed, as text that every driver compiles. Their
// grids are of one dimension.
#pragma once

namespace longwire::worker {

// An entry is an address and the 64 bytes for there. patch_shadow(entries, count) stores entries.
//
// compare_shadow(data, tiles, out, capacity, pass): `data` begins with a head of eight numbers: how
// many entries were wanted, how many blocks the first pass has compared, and for each pass how many
// blocks differed. Then come `tiles` times: the address of blocks, that of their shadow, and how
// many they are. Each block that differs goes to the entries at data + out, as long as there are
// less than `capacity`, and into the shadow. A pass behind one that has found nothing is empty.
inline constexpr char kCompareKernels[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry patch_shadow(.param .u64 entries, .param .u64 count)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<16>;
  ld.param.u64 %d0, [entries];
  ld.param.u64 %d1, [count];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r0, %r1, %r2;
  mul.lo.u32 %r5, %r3, %r1;
  cvt.u64.u32 %d2, %r4;
  cvt.u64.u32 %d3, %r5;
  shl.b64 %d1, %d1, 3;
next:
  setp.ge.u64 %p, %d2, %d1;
  @%p bra end;
  shr.u64 %d4, %d2, 3;
  and.b64 %d5, %d2, 7;
  shl.b64 %d5, %d5, 3;
  mad.lo.u64 %d6, %d4, 72, %d0;
  ld.global.u64 %d7, [%d6];
  add.u64 %d6, %d6, %d5;
  ld.global.u64 %d8, [%d6+8];
  add.u64 %d7, %d7, %d5;
  st.global.u64 [%d7], %d8;
  add.u64 %d2, %d2, %d3;
  bra next;
end:
  ret;
}

.visible .entry compare_shadow(.param .u64 data, .param .u64 tiles, .param .u64 out,
                               .param .u64 capacity, .param .u64 pass)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %d<48>;
  ld.param.u64 %d0, [data];
  ld.param.u64 %d1, [tiles];
  ld.param.u64 %d2, [out];
  ld.param.u64 %d3, [capacity];
  ld.param.u64 %d4, [pass];
  add.u64 %d2, %d2, %d0;
  shl.b64 %d5, %d4, 3;
  add.u64 %d5, %d5, %d0;
  setp.eq.u64 %p, %d4, 0;
  @%p bra begin;
  ld.global.u64 %d6, [%d5+8];
  setp.eq.u64 %p, %d6, 0;
  @%p bra end;
begin:
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %nctaid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ntid.x;
  cvt.u64.u32 %d6, %r0;
  cvt.u64.u32 %d7, %r1;
  cvt.u64.u32 %d8, %r2;
  cvt.u64.u32 %d9, %r3;
  mov.u64 %d10, 0;
  mov.u64 %d11, 0;
tile:
  setp.ge.u64 %p, %d6, %d1;
  @%p bra count;
  mad.lo.u64 %d12, %d6, 24, %d0;
  ld.global.u64 %d13, [%d12+64];
  ld.global.u64 %d14, [%d12+72];
  ld.global.u64 %d15, [%d12+80];
  mov.u64 %d16, %d8;
block:
  setp.ge.u64 %p, %d16, %d15;
  @%p bra after;
  shl.b64 %d17, %d16, 6;
  add.u64 %d18, %d13, %d17;
  add.u64 %d19, %d14, %d17;
  ld.global.v2.u64 {%d20, %d21}, [%d18];
  ld.global.v2.u64 {%d22, %d23}, [%d18+16];
  ld.global.v2.u64 {%d24, %d25}, [%d18+32];
  ld.global.v2.u64 {%d26, %d27}, [%d18+48];
  ld.global.v2.u64 {%d28, %d29}, [%d19];
  ld.global.v2.u64 {%d30, %d31}, [%d19+16];
  ld.global.v2.u64 {%d32, %d33}, [%d19+32];
  ld.global.v2.u64 {%d34, %d35}, [%d19+48];
  xor.b64 %d28, %d28, %d20;
  xor.b64 %d29, %d29, %d21;
  xor.b64 %d30, %d30, %d22;
  xor.b64 %d31, %d31, %d23;
  xor.b64 %d32, %d32, %d24;
  xor.b64 %d33, %d33, %d25;
  xor.b64 %d34, %d34, %d26;
  xor.b64 %d35, %d35, %d27;
  or.b64 %d28, %d28, %d29;
  or.b64 %d30, %d30, %d31;
  or.b64 %d32, %d32, %d33;
  or.b64 %d34, %d34, %d35;
  or.b64 %d28, %d28, %d30;
  or.b64 %d32, %d32, %d34;
  or.b64 %d28, %d28, %d32;
  add.u64 %d10, %d10, 1;
  add.u64 %d16, %d16, %d9;
  setp.eq.u64 %p, %d28, 0;
  @%p bra block;
  add.u64 %d11, %d11, 1;
  atom.global.add.u64 %d36, [%d0], 1;
  setp.ge.u64 %p, %d36, %d3;
  @%p bra block;
  mad.lo.u64 %d37, %d36, 72, %d2;
  st.global.u64 [%d37], %d18;
  st.global.u64 [%d37+8], %d20;
  st.global.u64 [%d37+16], %d21;
  st.global.u64 [%d37+24], %d22;
  st.global.u64 [%d37+32], %d23;
  st.global.u64 [%d37+40], %d24;
  st.global.u64 [%d37+48], %d25;
  st.global.u64 [%d37+56], %d26;
  st.global.u64 [%d37+64], %d27;
  st.global.v2.u64 [%d19], {%d20, %d21};
  st.global.v2.u64 [%d19+16], {%d22, %d23};
  st.global.v2.u64 [%d19+32], {%d24, %d25};
  st.global.v2.u64 [%d19+48], {%d26, %d27};
  bra block;
after:
  add.u64 %d6, %d6, %d7;
  bra tile;
count:
  setp.eq.u64 %p, %d11, 0;
  @%p bra compared;
  atom.global.add.u64 %d36, [%d5+16], %d11;
compared:
  setp.ne.u64 %p, %d4, 0;
  @%p bra end;
  atom.global.add.u64 %d36, [%d0+8], %d10;
end:
  ret;
}
)";

}  // namespace longwire::worker
