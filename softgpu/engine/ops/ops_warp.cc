// Exchanges between the lanes of a warp. Lanes that the member mask names but that are elsewhere
// are waited for (ForEachGroup).
#include "softgpu/engine/ops/ops_common.h"

namespace softgpu::SOFTGPU_ISA {
namespace {

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

template <Shuffle kMode>
void ShuffleGroup(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<uint32_t>(ins.op[1]);
  const auto* b = w.Reg<uint32_t>(ins.op[2]);
  const auto* c = w.Reg<uint32_t>(ins.op[3]);
  uint32_t value[kLanes];
  for (int i = 0; i < kLanes; ++i) value[i] = a[i];
  uint32_t inside = 0;
  ForEachLane(w.exec, [&](int i) {
    int segment = static_cast<int>(c[i] >> 8 & 31);
    int clamp = static_cast<int>(c[i] & 31);
    int by = static_cast<int>(b[i] & 31);
    int most = (i & segment) | (clamp & ~segment);
    int from = i;
    bool ok = false;
    if constexpr (kMode == Shuffle::kUp) {
      from = i - by;
      ok = from >= most;
    } else if constexpr (kMode == Shuffle::kDown) {
      from = i + by;
      ok = from <= most;
    } else if constexpr (kMode == Shuffle::kButterfly) {
      from = i ^ by;
      ok = from <= most;
    } else {
      from = (i & segment) | (by & ~segment);
      ok = from <= most;
    }
    if (ok) inside |= 1u << i;
    d[i] = value[ok ? from : i];
  });
  SetPredicate(w, ins.op[5], inside);
}

template <Shuffle kMode>
void ShuffleLanes(Warp& w, const Instruction& ins) {
  ForEachGroup(w, ins.op[4], [&](uint32_t) { ShuffleGroup<kMode>(w, ins); });
}

enum class Vote { kAll, kAny, kUniform, kBallot };

template <Vote kVote>
void VoteGroup(Warp& w, const Instruction& ins, uint32_t members) {
  uint32_t asked = members != 0 ? members & w.exec : w.exec;
  uint32_t yes = *w.Reg<uint32_t>(ins.op[1]) & asked;
  if constexpr (kVote == Vote::kBallot) {
    auto* d = w.Reg<uint32_t>(ins.op[0]);
    Lanes(w, [=](int i) { d[i] = yes; });
  } else {
    bool result = kVote == Vote::kAll   ? yes == asked
                  : kVote == Vote::kAny ? yes != 0
                                        : yes == asked || yes == 0;
    SetPredicate(w, ins.op[0], result ? kAllLanes : 0);
  }
}

// Lanes may each ask other members, as those below, of which groups cannot be made. If all that
// anybody asks are here, nobody waits.
bool BallotOfEach(Warp& w, const Instruction& ins) {
  const auto* members = w.Reg<uint32_t>(ins.op[2]);
  uint32_t named = 0;
  ForEachLane(w.exec, [&](int i) { named |= members[i]; });
  if (named == 0 || (named & w.alive & ~w.exec) != 0) return false;
  uint32_t yes = *w.Reg<uint32_t>(ins.op[1]) & w.exec;
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  Lanes(w, [=](int i) { d[i] = yes & members[i]; });
  return true;
}

template <Vote kVote>
void VoteLanes(Warp& w, const Instruction& ins) {
  if (kVote == Vote::kBallot && BallotOfEach(w, ins)) return;
  ForEachGroup(w, ins.op[2], [&](uint32_t members) { VoteGroup<kVote>(w, ins, members); });
}

// match.any: the lanes with my value. match.all: all lanes if all have one value, else none.
template <class T, bool kAll>
void MatchGroup(Warp& w, const Instruction& ins, uint32_t members) {
  members &= w.exec;
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  const auto* a = w.Reg<T>(ins.op[1]);
  uint32_t result[kLanes] = {};
  ForEachLane(w.exec, [&](int i) {
    ForEachLane(members, [&](int j) { result[i] |= a[j] == a[i] ? 1u << j : 0; });
    if (kAll && result[i] != members) result[i] = 0;
  });
  uint32_t matched = 0;
  ForEachLane(w.exec, [&](int i) {
    d[i] = result[i];
    if (result[i] != 0) matched |= 1u << i;
  });
  SetPredicate(w, ins.op[5], matched);
}

template <class T, bool kAll>
void Match(Warp& w, const Instruction& ins) {
  ForEachGroup(w, ins.op[2], [&](uint32_t members) { MatchGroup<T, kAll>(w, ins, members); });
}

void ElectGroup(Warp& w, const Instruction& ins, uint32_t members) {
  members = (members & w.exec) != 0 ? members & w.exec : w.exec;
  auto leader = static_cast<uint32_t>(std::countr_zero(members));
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  Lanes(w, [=](int i) { d[i] = leader; });
  SetPredicate(w, ins.op[5], 1u << leader);
}

void Elect(Warp& w, const Instruction& ins) {
  ForEachGroup(w, ins.op[2], [&](uint32_t members) { ElectGroup(w, ins, members); });
}

void ActiveMask(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<uint32_t>(ins.op[0]);
  uint32_t mask = w.exec;
  Lanes(w, [=](int i) { d[i] = mask; });
}

enum class Reduce { kAdd, kMin, kMax, kAnd, kOr, kXor };

template <Reduce kReduce, class T>
void ReduceGroup(Warp& w, const Instruction& ins) {
  auto* d = w.Reg<T>(ins.op[0]);
  const auto* a = w.Reg<T>(ins.op[1]);
  T result = a[std::countr_zero(w.exec)];
  ForEachLane(w.exec & (w.exec - 1), [&](int i) {
    T v = a[i];
    switch (kReduce) {
      case Reduce::kAdd:
        result = static_cast<T>(static_cast<uint32_t>(result) + static_cast<uint32_t>(v));
        break;
      case Reduce::kMin:
        result = v < result ? v : result;
        break;
      case Reduce::kMax:
        result = v > result ? v : result;
        break;
      case Reduce::kAnd:
        result &= v;
        break;
      case Reduce::kOr:
        result |= v;
        break;
      case Reduce::kXor:
        result ^= v;
        break;
    }
  });
  ForEachLane(w.exec, [&](int i) { d[i] = result; });
}

template <Reduce kReduce, class T>
void ReduceLanes(Warp& w, const Instruction& ins) {
  ForEachGroup(w, ins.op[2], [&](uint32_t) { ReduceGroup<kReduce, T>(w, ins); });
}

constexpr OpEntry kOps[] = {
    {"activemask.b32", "i", ActiveMask},
    {"elect", nullptr, Elect},
    {"match.all.b32", nullptr, Match<uint32_t, true>},
    {"match.all.b64", nullptr, Match<uint64_t, true>},
    {"match.any.b32", nullptr, Match<uint32_t, false>},
    {"match.any.b64", nullptr, Match<uint64_t, false>},
    {"redux.add.s32", "iii", ReduceLanes<Reduce::kAdd, int32_t>},
    {"redux.add.u32", "iii", ReduceLanes<Reduce::kAdd, uint32_t>},
    {"redux.and.b32", "iii", ReduceLanes<Reduce::kAnd, uint32_t>},
    {"redux.max.s32", "iii", ReduceLanes<Reduce::kMax, int32_t>},
    {"redux.max.u32", "iii", ReduceLanes<Reduce::kMax, uint32_t>},
    {"redux.min.s32", "iii", ReduceLanes<Reduce::kMin, int32_t>},
    {"redux.min.u32", "iii", ReduceLanes<Reduce::kMin, uint32_t>},
    {"redux.or.b32", "iii", ReduceLanes<Reduce::kOr, uint32_t>},
    {"redux.xor.b32", "iii", ReduceLanes<Reduce::kXor, uint32_t>},
    {"shfl.bfly", nullptr, ShuffleLanes<Shuffle::kButterfly>},
    {"shfl.down", nullptr, ShuffleLanes<Shuffle::kDown>},
    {"shfl.idx", nullptr, ShuffleLanes<Shuffle::kIndex>},
    {"shfl.up", nullptr, ShuffleLanes<Shuffle::kUp>},
    {"vote.all", nullptr, VoteLanes<Vote::kAll>},
    {"vote.any", nullptr, VoteLanes<Vote::kAny>},
    {"vote.ballot", nullptr, VoteLanes<Vote::kBallot>},
    {"vote.uni", nullptr, VoteLanes<Vote::kUniform>},
};

}  // namespace

std::span<const OpEntry> WarpOps() { return kOps; }

}  // namespace softgpu::SOFTGPU_ISA
