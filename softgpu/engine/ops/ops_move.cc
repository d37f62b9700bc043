// Moves, selects, predicates, and vectors packed into one register.
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

struct And {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a & b; }
};
struct Or {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a | b; }
};
struct Xor {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a ^ b; }
};
struct Copy {
  template <class T>
  T operator()(T a) const {
    return a;
  }
};

template <class T>
void Select(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<T>(ins.op[0]);
  const auto* a = w.Reg<T>(ins.op[1]);
  const auto* b = w.Reg<T>(ins.op[2]);
  uint32_t p = *w.Reg<uint32_t>(ins.op[3]);
  Lanes(w, [=](int i) { d[i] = (p >> i & 1) != 0 ? a[i] : b[i]; });
}

// slct: a where c >= 0, else b.
template <class T, class C>
void SelectBySign(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<T>(ins.op[0]);
  const auto* a = w.Reg<T>(ins.op[1]);
  const auto* b = w.Reg<T>(ins.op[2]);
  const auto* c = w.Reg<C>(ins.op[3]);
  Lanes(w, [=](int i) { d[i] = c[i] >= 0 ? a[i] : b[i]; });
}

template <class Op>
void PredicateOp(Warp& w, const Instruction& ins) {
  SetPredicate(w, ins.op[0], Op()(*w.Reg<uint32_t>(ins.op[1]), *w.Reg<uint32_t>(ins.op[2])));
}
void PredicateNot(Warp& w, const Instruction& ins) {
  SetPredicate(w, ins.op[0], ~*w.Reg<uint32_t>(ins.op[1]));
}
void PredicateMove(Warp& w, const Instruction& ins) {
  SetPredicate(w, ins.op[0], *w.Reg<uint32_t>(ins.op[1]));
}

// {a, b} and {a, b, c, d} as one register and back; op[0] is the whole.
template <class T, class Part, int kCount, bool kPack>
void Vector(Warp& w, const Instruction& ins) {
  auto* whole = w.Reg<T>(ins.op[0]);
  ForEachLane(w.exec, [&](int i) {
    if constexpr (kPack) {
      T value = 0;
      for (int n = 0; n < kCount; ++n) {
        value |= static_cast<T>(static_cast<Part>(w.Reg<uint32_t>(ins.op[n + 1])[i]))
                 << (n * static_cast<int>(sizeof(Part)) * 8);
      }
      whole[i] = value;
    } else {
      T value = whole[i];
      for (int n = 0; n < kCount; ++n) {
        w.Reg<uint32_t>(ins.op[n + 1])[i] =
            static_cast<Part>(value >> (n * static_cast<int>(sizeof(Part)) * 8));
      }
    }
  });
}

constexpr OpEntry kOps[] = {
    {"and.pred", "ppp", PredicateOp<And>},
    One<Copy, uint32_t>("mov.b32"),
    One<Copy, uint64_t>("mov.b64"),
    {"mov.pred", "pp", PredicateMove},
    {"not.pred", "pp", PredicateNot},
    {"or.pred", "ppp", PredicateOp<Or>},
    {"pack.2x16", nullptr, Vector<uint32_t, uint16_t, 2, true>},
    {"pack.2x32", nullptr, Vector<uint64_t, uint32_t, 2, true>},
    {"pack.2x8", nullptr, Vector<uint32_t, uint8_t, 2, true>},
    {"pack.4x16", nullptr, Vector<uint64_t, uint16_t, 4, true>},
    {"pack.4x8", nullptr, Vector<uint32_t, uint8_t, 4, true>},
    {"selp.b16", "iiip", Select<uint32_t>},
    {"selp.b32", "iiip", Select<uint32_t>},
    {"selp.b64", "lllp", Select<uint64_t>},
    {"selp.bf16", "eeep", Select<uint32_t>},
    {"selp.f16", "eeep", Select<uint32_t>},
    {"selp.f32", "fffp", Select<uint32_t>},
    {"selp.f64", "dddp", Select<uint64_t>},
    {"slct.b32.f32", "iiif", SelectBySign<uint32_t, float>},
    {"slct.b32.s32", "iiii", SelectBySign<uint32_t, int32_t>},
    {"slct.b64.f32", "lllf", SelectBySign<uint64_t, float>},
    {"slct.b64.s32", "llli", SelectBySign<uint64_t, int32_t>},
    {"slct.f32.f32", "ffff", SelectBySign<uint32_t, float>},
    {"slct.f32.s32", "fffi", SelectBySign<uint32_t, int32_t>},
    {"slct.f64.f32", "dddf", SelectBySign<uint64_t, float>},
    {"slct.f64.s32", "dddi", SelectBySign<uint64_t, int32_t>},
    {"slct.s32.f32", "iiif", SelectBySign<uint32_t, float>},
    {"slct.s32.s32", "iiii", SelectBySign<uint32_t, int32_t>},
    {"slct.u32.f32", "iiif", SelectBySign<uint32_t, float>},
    {"slct.u32.s32", "iiii", SelectBySign<uint32_t, int32_t>},
    {"slct.u64.f32", "lllf", SelectBySign<uint64_t, float>},
    {"slct.u64.s32", "llli", SelectBySign<uint64_t, int32_t>},
    {"unpack.2x16", nullptr, Vector<uint32_t, uint16_t, 2, false>},
    {"unpack.2x32", nullptr, Vector<uint64_t, uint32_t, 2, false>},
    {"unpack.2x8", nullptr, Vector<uint32_t, uint8_t, 2, false>},
    {"unpack.4x16", nullptr, Vector<uint64_t, uint16_t, 4, false>},
    {"unpack.4x8", nullptr, Vector<uint32_t, uint8_t, 4, false>},
    {"xor.pred", "ppp", PredicateOp<Xor>},
};

}  // namespace

std::span<const OpEntry> MoveOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
