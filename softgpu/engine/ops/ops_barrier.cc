// mbarrier: 64 bits in shared memory that count arrivals and outstanding bytes of one phase after
// another. The layout is the device's own; a state token is the word as it was before an arrival.
#include "softgpu/engine/ops/memory_access.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

constexpr uint64_t kCountMask = (1u << 20) - 1;  // counts go to 2^20 - 1
constexpr int kExpectedShift = 20;               // below: arrivals that are missing
constexpr int kBytesShift = 40;                  // of outstanding bytes, of 21 bits
constexpr uint64_t kBytesMask = (1u << 21) - 1;  // wraps around: it may go below zero between
constexpr uint64_t kPhase = uint64_t{1} << 63;

struct Phase {
  uint64_t missing, expected, bytes, phase;

  explicit Phase(uint64_t word)
      : missing(word & kCountMask),
        expected(word >> kExpectedShift & kCountMask),
        bytes(word >> kBytesShift & kBytesMask),
        phase(word & kPhase) {}

  // The word; a phase that has nothing left to wait for makes way for the next one.
  uint64_t Word() {
    if (missing == 0 && bytes == 0) {
      phase ^= kPhase;
      missing = expected;
    }
    return missing | expected << kExpectedShift | bytes << kBytesShift | phase;
  }
};

// Changes the word of one lane by f(Phase&) and returns what it was.
template <class F>
uint64_t Change(uint64_t address, F f) {
  auto* word = reinterpret_cast<uint64_t*>(address);
  uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (true) {
    Phase phase(old);
    f(phase);
    if (__atomic_compare_exchange_n(word, &old, phase.Word(), true, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return old;
    }
  }
}

template <bool kShared>
bool Locate(Warp& w, const Instruction& ins, Addresses& at) {
  return kShared ? SharedAddresses(w, ins, 8, at) : GenericAddresses(w, ins, 8, at);
}

template <bool kShared>
void Init(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!Locate<kShared>(w, ins, at)) return;
  const auto* count = w.Reg<uint32_t>(ins.op[1]);
  ForEachLane(w.exec, [&](int i) {
    uint64_t c = count[i] & kCountMask;
    __atomic_store_n(reinterpret_cast<uint64_t*>(at.lane[i]), c | c << kExpectedShift,
                     __ATOMIC_SEQ_CST);
  });
}

// op: 0 the state, 1 how many arrive, 2 bytes to expect first. kDrop: they do not come again.
template <bool kDrop, bool kShared>
void Arrive(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!Locate<kShared>(w, ins, at)) return;
  auto* d = w.Reg<uint64_t>(ins.op[0]);
  const auto* count = w.Reg<uint32_t>(ins.op[1]);
  const auto* bytes = w.Reg<uint32_t>(ins.op[2]);
  ForEachLane(w.exec, [&](int i) {
    d[i] = Change(at.lane[i], [&](Phase& p) {
      p.bytes = (p.bytes + bytes[i]) & kBytesMask;
      p.missing = (p.missing - count[i]) & kCountMask;
      if (kDrop) p.expected = (p.expected - count[i]) & kCountMask;
    });
  });
}

// Bytes that are expected (kDone false) or have come.
template <bool kDone, bool kShared>
void CountBytes(Warp& w, const Instruction& ins) {
  Addresses at;
  if (!Locate<kShared>(w, ins, at)) return;
  const auto* bytes = w.Reg<uint32_t>(ins.op[1]);
  ForEachLane(w.exec, [&](int i) {
    Change(at.lane[i], [&](Phase& p) {
      p.bytes = (kDone ? p.bytes - bytes[i] : p.bytes + bytes[i]) & kBytesMask;
    });
  });
}

// Whether the phase of a state (or the one of a parity) is over. Part of a loop that waits.
template <bool kParity, bool kShared>
void IsOver(Warp& w, const Instruction& ins) {
  CountPoll(w);
  Addresses at;
  if (!Locate<kShared>(w, ins, at)) return;
  uint32_t over = 0;
  ForEachLane(w.exec, [&](int i) {
    auto* word = reinterpret_cast<uint64_t*>(at.lane[i]);
    uint64_t now = __atomic_load_n(word, __ATOMIC_SEQ_CST) & kPhase;
    uint64_t asked = 0;
    if constexpr (kParity) {
      asked = (w.Reg<uint32_t>(ins.op[1])[i] & 1) != 0 ? kPhase : 0;
    } else {
      asked = w.Reg<uint64_t>(ins.op[1])[i] & kPhase;
    }
    if (now != asked) over |= 1u << i;
  });
  SetPredicate(w, ins.op[0], over);
}

void PendingCount(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* state = w.Reg<uint64_t>(ins.op[1]);
  Lanes(w, [=](int i) { d[i] = static_cast<uint32_t>(state[i] & kCountMask); });
}

#define SOFTGPU_MBARRIER(name, ...)                      \
  {"mbarrier." name, nullptr, __VA_ARGS__ false > }, {   \
    "mbarrier.shared." name, nullptr, __VA_ARGS__ true > \
  }

constexpr OpEntry kOps[] = {
    SOFTGPU_MBARRIER("arrive", Arrive < false, ),
    SOFTGPU_MBARRIER("arrive_drop", Arrive < true, ),
    SOFTGPU_MBARRIER("complete_tx", CountBytes < true, ),
    SOFTGPU_MBARRIER("expect_tx", CountBytes < false, ),
    SOFTGPU_MBARRIER("init", Init <),
    SOFTGPU_MBARRIER("parity", IsOver < true, ),
    {"mbarrier.pending_count.b64", "il", PendingCount},
    SOFTGPU_MBARRIER("wait", IsOver < false, ),
};

}  // namespace

std::span<const OpEntry> BarrierOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
