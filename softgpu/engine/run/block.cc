// A block: its memory, its warps in turn.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "softgpu/engine/run/run.h"

namespace softgpu {

bool PrepareBlock(Block& block, LaunchState& launch) {
  const CodeFunction& function = *launch.kernel->function;
  block.launch = &launch;
  uint32_t warps = (launch.threads + kLanes - 1) / kLanes;
  block.warps.resize(warps);
  size_t per_warp = (function.register_bytes + 63) / 64 * 64;
  block.registers =
      static_cast<std::byte*>(std::aligned_alloc(64, std::max<size_t>(per_warp * warps, 64)));
  if (block.registers == nullptr) return false;
  uint64_t local_bytes = uint64_t{kLanes} * function.local_bytes;
  PrivateMemory& memory = PrivateMemory::Get();
  if (launch.shared_bytes > 0) {
    block.shared_base = memory.Allocate(launch.shared_bytes);
    if (block.shared_base == 0) return false;
  }
  if (local_bytes > 0) {
    block.local_base = memory.Allocate(local_bytes * warps);
    if (block.local_base == 0) return false;
  }
  for (uint32_t i = 0; i < warps; ++i) {
    Warp& w = block.warps[i];
    w.block = &block;
    w.index = i;
    w.arena = &Arena::Get();
    w.device = OnlyDevice(launch.config.device);
    w.private_memory = &memory;
    w.shared_base = block.shared_base;
    w.shared_bytes = launch.shared_bytes;
    w.cluster_blocks = launch.cluster_blocks;
    w.entry_frame.function = &function;
    w.entry_frame.registers = block.registers + per_warp * i;
    w.entry_frame.local_base = block.local_base + local_bytes * i;
  }
  return true;
}

void StartBlock(Block& block) {
  const LaunchState& launch = *block.launch;
  const uint32_t* grid = launch.config.grid;
  block.number = (uint64_t{block.index[2]} * grid[1] + block.index[1]) * grid[0] + block.index[0];
  block.threads_alive = launch.threads;
  block.failure = Status{};
  if (launch.kernel->uses_reserved_shared) {
    uint64_t reserved = block.shared_base + launch.shared_bytes - DeviceShape::kReservedSharedBytes;
    std::memset(reinterpret_cast<void*>(reserved), 0, DeviceShape::kReservedSharedBytes);
  }
  std::fill(std::begin(block.barriers), std::end(block.barriers), Barrier{});
  for (Warp& w : block.warps) {
    uint32_t lanes = std::min<uint32_t>(kLanes, launch.threads - w.index * kLanes);
    w.alive = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    w.arrived = 0;
    w.active = 0;
    w.fair_turn = false;
    w.forced = false;
    w.entry_frame.live = w.alive;
    w.strands.clear();
    Strand strand;
    strand.frame = &w.entry_frame;
    ParkLanes(w, w.alive, strand);
  }
}

Turn RunTurn(Block& block, int64_t* fuel) {
  bool progress = false;
  block.polls = false;
  for (Warp& w : block.warps) {
    if (w.alive == 0) continue;
    if (RunWarp(w) == WarpResult::kFailed) return Turn::kFailed;
    progress |= w.used > 0;
    *fuel -= w.used;
  }
  return progress ? Turn::kProgress : Turn::kNothing;
}

void DiscardBlock(Block& block) {
  PrivateMemory& memory = PrivateMemory::Get();
  const CodeFunction& function = *block.launch->kernel->function;
  if (block.shared_base != 0) memory.Free(block.shared_base, block.launch->shared_bytes);
  uint64_t local_bytes = uint64_t{kLanes} * function.local_bytes * block.warps.size();
  if (block.local_base != 0) memory.Free(block.local_base, local_bytes);
  for (Warp& w : block.warps) {
    // Frames of calls that were cut short are reachable only from the strands.
    for (Strand& s : w.strands) {
      for (Frame* f = s.frame; f != nullptr && f->parent != nullptr; f = f->parent) {
        if (std::find(w.free_frames.begin(), w.free_frames.end(), f) == w.free_frames.end()) {
          w.free_frames.push_back(f);
        }
      }
    }
    if (w.active != 0) {
      for (Frame* f = w.frame; f != nullptr && f->parent != nullptr; f = f->parent) {
        if (std::find(w.free_frames.begin(), w.free_frames.end(), f) == w.free_frames.end()) {
          w.free_frames.push_back(f);
        }
      }
    }
    for (Frame* f : w.free_frames) DiscardFrame(f);
  }
  std::free(block.registers);
}

}  // namespace softgpu
