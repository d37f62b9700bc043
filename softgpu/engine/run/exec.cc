// Strands, frames and barriers of a warp. Of a warp's strands the one with the deepest frame and
// then the lowest program counter runs, until it reaches the next one's: so lanes meet again after
// a branch without a control-flow graph. So that a spinning strand cannot starve the one that
// would release it, every other slice of a diverged warp goes to the strand that waited longest.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "softgpu/engine/run/run.h"

namespace softgpu {
namespace {

constexpr uint32_t kNoLimit = 0xffffffffu;
constexpr int32_t kSlice = 8192;  // instructions of a warp in one go
constexpr int32_t kDivergedSlice = 2048;
constexpr int32_t kFairSlice = 256;
constexpr uint32_t kMaxDepth = 1024;  // nested calls; a GPU's default stack is 1 KiB per thread

bool Before(const Strand& a, const Strand& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.pc < b.pc;
}

void EnterFrame(Warp& w, Frame* frame) {
  w.frame = frame;
  w.code = frame->function->code.data();
  w.base[0] = frame->registers;
  w.base[1] = const_cast<std::byte*>(frame->function->constant_base);
}

void SetLimit(Warp& w) {
  w.limit = kNoLimit;
  for (const Strand& s : w.strands) {
    if (s.frame == w.frame && s.state != Strand::State::kBarrier && s.pc > w.pc) {
      w.limit = std::min(w.limit, s.pc);
    }
  }
}

void Resume(Warp& w, size_t chosen) {
  Strand strand = w.strands[chosen];
  EnterFrame(w, strand.frame);
  w.pc = strand.pc;
  w.active = 0;
  // Everybody who stands at the same instruction comes along.
  std::erase_if(w.strands, [&](const Strand& s) {
    bool same = s.frame == strand.frame && s.pc == strand.pc && s.state != Strand::State::kBarrier;
    if (same) w.active |= s.mask;
    return same;
  });
  ++w.turn;
  SetLimit(w);
}

// Makes a strand the running one; false if none can run.
bool PickStrand(Warp& w) {
  constexpr size_t kNone = ~size_t{0};
  size_t best = kNone;
  for (size_t i = 0; i < w.strands.size(); ++i) {
    const Strand& s = w.strands[i];
    if (s.state == Strand::State::kReady && (best == kNone || Before(s, w.strands[best]))) best = i;
  }
  if (best == kNone) {
    // Nobody else can come: lanes that wait for absent ones go on without them.
    for (size_t i = 0; i < w.strands.size(); ++i) {
      const Strand& s = w.strands[i];
      if (s.state == Strand::State::kLanes && (best == kNone || Before(s, w.strands[best]))) {
        best = i;
      }
    }
    if (best == kNone) return false;
    w.forced = true;
  }
  Resume(w, best);
  return true;
}

bool PickOldest(Warp& w) {
  size_t best = w.strands.size();
  for (size_t i = 0; i < w.strands.size(); ++i) {
    if (w.strands[i].state != Strand::State::kReady) continue;
    if (best == w.strands.size() || w.strands[i].last_run < w.strands[best].last_run) best = i;
  }
  if (best == w.strands.size()) return PickStrand(w);
  Resume(w, best);
  w.limit = kNoLimit;
  return true;
}

void FreeFrame(Warp& w, Frame* frame) { w.free_frames.push_back(frame); }

Frame* NewFrame(Warp& w, const CodeFunction& function) {
  for (size_t i = w.free_frames.size(); i-- > 0;) {
    if (w.free_frames[i]->function != &function) continue;
    Frame* frame = w.free_frames[i];
    w.free_frames.erase(w.free_frames.begin() + static_cast<ptrdiff_t>(i));
    return frame;
  }
  auto frame = std::make_unique<Frame>();
  frame->function = &function;
  if (function.local_bytes > 0) {
    frame->local_base = PrivateMemory::Get().Allocate(uint64_t{kLanes} * function.local_bytes);
    if (frame->local_base == 0) return nullptr;
  }
  size_t bytes = (function.register_bytes + 63) / 64 * 64;
  frame->registers = static_cast<std::byte*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64)));
  if (frame->registers == nullptr) {
    DiscardFrame(frame.release());
    return nullptr;
  }
  return frame.release();
}

void CopyLocal(uint64_t to, uint32_t to_stride, const LocalSlot& target, uint64_t from,
               uint32_t from_stride, const LocalSlot& source, uint32_t mask) {
  uint32_t bytes = std::min(target.bytes, source.bytes);
  for (; mask != 0; mask &= mask - 1) {
    uint64_t lane = static_cast<uint64_t>(std::countr_zero(mask));
    std::memcpy(reinterpret_cast<void*>(to + lane * to_stride + target.offset),
                reinterpret_cast<const void*>(from + lane * from_stride + source.offset), bytes);
  }
}

}  // namespace

void DiscardFrame(Frame* frame) {
  uint64_t bytes = uint64_t{kLanes} * frame->function->local_bytes;
  if (frame->local_base != 0) PrivateMemory::Get().Free(frame->local_base, bytes);
  std::free(frame->registers);
  delete frame;
}

void Fault(Warp& w, const Instruction& instruction, int code, const std::string& what) {
  Block& block = *w.block;
  if (block.failure.code == 0) {
    block.failure.code = code;
    block.failure.message = "kernel " + block.launch->kernel->function->name;
    if (!w.frame->function->entry) block.failure.message += ", in " + w.frame->function->name;
    block.failure.message += ", PTX line " + std::to_string(instruction.line) + ": " + what;
  }
  EndSlice(w);
}

void EndSlice(Warp& w) { w.limit = 0; }

uint32_t CurrentStart(const Warp& w) {
  uint32_t pc = w.pc - 1;
  while (w.code[pc].continues != 0) --pc;
  return pc;
}

void ParkLanes(Warp& w, uint32_t mask, Strand strand) {
  strand.mask = mask;
  strand.last_run = w.turn;
  w.strands.push_back(strand);
}

namespace {

inline void Step(Warp& w) {
  const Instruction& instruction = w.code[w.pc++];
  uint32_t exec = w.active;
  if (instruction.guard != 0) {
    uint32_t guard = *reinterpret_cast<uint32_t*>(w.base[0] + (instruction.guard & ~3u));
    exec &= (instruction.guard & 2) != 0 ? ~guard : guard;
  }
  w.exec = exec;
  if (exec != 0) instruction.run(w, instruction);
}

// Strands share temporaries, so none stops within a PTX instruction.
void EndInstruction(Warp& w) {
  while (w.active != 0 && w.code[w.pc].continues != 0 && w.block->failure.code == 0) Step(w);
}

WarpResult RunSlice(Warp& w, bool fair) {
  if (!(fair ? PickOldest(w) : PickStrand(w))) {
    return w.alive != 0 ? WarpResult::kBlocked : WarpResult::kDone;
  }
  while (true) {
    do {
      Step(w);
    } while (--w.fuel > 0 && w.pc < w.limit);
    EndInstruction(w);
    if (w.block->failure.code != 0) return WarpResult::kFailed;
    if (w.active != 0) {
      Strand strand;
      strand.frame = w.frame;
      strand.pc = w.pc;
      ParkLanes(w, w.active, strand);
      w.active = 0;
    }
    if (w.fuel <= 0) return w.alive != 0 ? WarpResult::kReady : WarpResult::kDone;
    if (!PickStrand(w)) return w.alive != 0 ? WarpResult::kBlocked : WarpResult::kDone;
  }
}

}  // namespace

WarpResult RunWarp(Warp& w) {
  bool diverged = w.strands.size() > 1;
  bool fair = diverged && w.fair_turn;
  int32_t slice = fair ? kFairSlice : diverged ? kDivergedSlice : kSlice;
  w.fuel = slice;
  w.fair_turn = diverged && !fair;
  WarpResult result = RunSlice(w, fair);
  w.used = slice - w.fuel;
  return result;
}

void ExitLanes(Warp& w, uint32_t mask) {
  w.alive &= ~mask;
  w.active &= ~mask;
  Cluster& cluster = *w.block->cluster;
  w.block->threads_alive -= static_cast<uint32_t>(std::popcount(mask));
  cluster.threads_alive -= static_cast<uint32_t>(std::popcount(mask));
  cluster.arrived -= static_cast<uint32_t>(std::popcount(mask & w.arrived));
  w.arrived &= ~mask;
  for (Frame* frame = w.frame; frame != nullptr;) {
    Frame* parent = frame->parent;
    frame->live &= ~mask;
    if (frame->live == 0 && parent != nullptr) FreeFrame(w, frame);
    frame = parent;
  }
  if (w.active == 0) EndSlice(w);
  ReleaseBarriers(*w.block);
  if (cluster.arrived != 0) ReleaseCluster(cluster);
}

void CallFunction(Warp& w, const Instruction& instruction, const CodeFunction& callee,
                  const CallSite& site, uint32_t mask) {
  Frame* frame = w.frame->depth < kMaxDepth ? NewFrame(w, callee) : nullptr;
  if (frame == nullptr) return Fault(w, instruction, kLaunchFailed, "call stack too deep");
  frame->parent = w.frame;
  frame->return_pc = w.pc;
  frame->site = &site;
  frame->live = mask;
  frame->depth = w.frame->depth + 1;
  size_t count = std::min(site.arguments.size(), callee.parameters.size());
  for (size_t i = 0; i < count; ++i) {
    CopyLocal(frame->local_base, callee.local_bytes, callee.parameters[i], w.frame->local_base,
              w.frame->function->local_bytes, site.arguments[i], mask);
  }
  if (uint32_t rest = w.active & ~mask) {
    Strand strand;
    strand.frame = w.frame;
    strand.pc = w.pc;
    ParkLanes(w, rest, strand);
  }
  EnterFrame(w, frame);
  w.active = mask;
  w.pc = 0;
  w.limit = kNoLimit;
}

void ReturnLanes(Warp& w, uint32_t mask) {
  Frame* frame = w.frame;
  Frame* parent = frame->parent;
  if (parent == nullptr) return ExitLanes(w, mask);
  const CodeFunction& function = *frame->function;
  size_t count = std::min(frame->site->results.size(), function.returns.size());
  for (size_t i = 0; i < count; ++i) {
    CopyLocal(parent->local_base, parent->function->local_bytes, frame->site->results[i],
              frame->local_base, function.local_bytes, function.returns[i], mask);
  }
  Strand strand;
  strand.frame = parent;
  strand.pc = frame->return_pc;
  ParkLanes(w, mask, strand);
  w.active &= ~mask;
  frame->live &= ~mask;
  if (frame->live == 0) FreeFrame(w, frame);
  if (w.active == 0) EndSlice(w);
}

bool GatherLanes(Warp& w, uint32_t wanted) {
  wanted &= w.alive;
  if ((wanted & ~w.exec) == 0 || w.forced) {
    w.forced = false;
    return true;
  }
  Strand strand;
  strand.frame = w.frame;
  strand.pc = CurrentStart(w);
  strand.state = Strand::State::kLanes;
  strand.wanted = wanted;
  ParkLanes(w, w.exec, strand);
  w.active &= ~w.exec;
  EndSlice(w);
  return false;
}

void ReleaseBarriers(Block& block) {
  for (uint32_t id = 0; id < 16; ++id) {
    Barrier& barrier = block.barriers[id];
    uint32_t expected = barrier.expected != 0 ? barrier.expected : block.threads_alive;
    if (barrier.arrived == 0 || barrier.arrived < expected) continue;
    for (Warp& w : block.warps) {
      for (Strand& s : w.strands) {
        if (s.state != Strand::State::kBarrier || s.barrier != id) continue;
        s.state = Strand::State::kReady;
        if (s.reduction == 1) {
          auto* result = reinterpret_cast<uint32_t*>(s.frame->registers + s.result);
          for (int i = 0; i < kLanes; ++i) {
            if (s.mask >> i & 1) result[i] = barrier.votes;
          }
        } else if (s.reduction != 0) {
          bool vote = s.reduction == 2 ? barrier.votes == barrier.arrived : barrier.votes > 0;
          auto* result = reinterpret_cast<uint32_t*>(s.frame->registers + s.result);
          *result = (*result & ~s.mask) | (vote ? s.mask : 0);
        }
      }
    }
    barrier = Barrier{};
  }
}

}  // namespace softgpu
