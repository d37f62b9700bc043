#include "softgpu/engine/run/cluster_memory.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

namespace softgpu {
namespace {

constexpr uint64_t kAbsentBlocks = 0x4c5a000000000000;              // far from every mapping
constexpr uint64_t kMaxRanks = DeviceShape::kMaxClusterBlocks + 1;  // the last is no block's

uint64_t AddressOf(uint64_t rank, uint64_t offset) {
  return (std::min(rank, kMaxRanks - 1) + 1) << kRankShift | (offset & kOffsetMask);
}

template <class F>
void ForEachLane(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

bool FailLane(Warp& w, const Instruction& ins, uint64_t address, uint64_t bytes, bool allowed) {
  const std::string absent = AbsentBlock(w, SharedToGeneric(w, address));
  char text[96];
  std::snprintf(text, sizeof text, "%s address 0x%llx of shared memory, %llu bytes",
                allowed ? "misaligned" : "illegal", static_cast<unsigned long long>(address),
                static_cast<unsigned long long>(bytes));
  Fault(w, ins, allowed ? kMisalignedAddress : kIllegalAddress, absent.empty() ? text : absent);
  return false;
}

}  // namespace

uint64_t SharedBaseOf(const Warp& w, uint64_t address) {
  const uint64_t owner = address >> kRankShift;
  const std::vector<Block>& blocks = w.block->cluster->blocks;
  if (owner == 0) return w.shared_base;
  return owner <= blocks.size() ? blocks[owner - 1].shared_base : 0;
}

const Block* OwnerOf(const Warp& w, uint64_t generic) {
  for (const Block& block : w.block->cluster->blocks) {
    if (generic - block.shared_base < w.shared_bytes) return &block;
  }
  return nullptr;
}

// What cannot be an address in the window is moved along with it, as if all were the block's own.
uint64_t SharedToGeneric(const Warp& w, uint64_t address) {
  if (address >> kRankShift > kMaxRanks) return address + w.shared_base;
  if (const uint64_t base = SharedBaseOf(w, address)) return base + (address & kOffsetMask);
  return kAbsentBlocks + address;
}

uint64_t GenericToShared(const Warp& w, uint64_t generic) {
  if (generic - kAbsentBlocks < (kMaxRanks + 1) << kRankShift) return generic - kAbsentBlocks;
  const Block* owner = OwnerOf(w, generic);
  if (owner == nullptr || owner == w.block) return generic - w.shared_base;
  return AddressOf(owner->rank, generic - owner->shared_base);
}

std::string AbsentBlock(const Warp& w, uint64_t generic) {
  const uint64_t address = generic - kAbsentBlocks;
  if (address >> kRankShift == 0 || address >> kRankShift > kMaxRanks) return "";
  const size_t blocks = w.block->cluster->blocks.size();
  return "shared memory of block " + std::to_string((address >> kRankShift) - 1) +
         " of a cluster of " + std::to_string(blocks) + (blocks == 1 ? " block" : " blocks");
}

bool LocateInCluster(Warp& w, const Instruction& ins, uint64_t* lane, uint64_t bytes, uint64_t* low,
                     uint64_t* high) {
  *low = ~uint64_t{0};
  *high = 0;
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    uint64_t& address = lane[std::countr_zero(m)];
    const uint64_t base = SharedBaseOf(w, address), offset = address & kOffsetMask;
    const bool allowed = base != 0 && offset < w.shared_bytes && w.shared_bytes - offset >= bytes;
    if (!allowed || (address & (bytes - 1)) != 0) return FailLane(w, ins, address, bytes, allowed);
    address = base + offset;
    *low = std::min(*low, address);
    *high = std::max(*high, address);
  }
  return true;
}

void MapShared(Warp& w, const Instruction& i) {
  auto* to = w.Reg<uint32_t>(i.op[0]);
  const auto *from = w.Reg<uint32_t>(i.op[1]), *rank = w.Reg<uint32_t>(i.op[2]);
  ForEachLane(w.exec, [=](int lane) {
    to[lane] = static_cast<uint32_t>(AddressOf(rank[lane], from[lane]));
  });
}

// Nowhere is what lies in no shared memory, so that an access faults.
void MapGeneric(Warp& w, const Instruction& i) {
  auto* to = w.Reg<uint64_t>(i.op[0]);
  const auto* from = w.Reg<uint64_t>(i.op[1]);
  const auto* rank = w.Reg<uint32_t>(i.op[2]);
  ForEachLane(w.exec, [&](int lane) {
    const Block* owner = OwnerOf(w, from[lane]);
    to[lane] = owner == nullptr
                   ? 0
                   : SharedToGeneric(w, AddressOf(rank[lane], from[lane] - owner->shared_base));
  });
}

void RankOfShared(Warp& w, const Instruction& i) {
  auto* to = w.Reg<uint32_t>(i.op[0]);
  const auto* from = w.Reg<uint32_t>(i.op[1]);
  ForEachLane(w.exec, [&](int lane) {
    const uint32_t owner = from[lane] >> kRankShift;
    to[lane] = owner == 0 ? w.block->rank : owner - 1;
  });
}

void RankOfGeneric(Warp& w, const Instruction& i) {
  auto* to = w.Reg<uint32_t>(i.op[0]);
  const auto* from = w.Reg<uint64_t>(i.op[1]);
  ForEachLane(w.exec, [&](int lane) {
    const Block* owner = OwnerOf(w, from[lane]);
    to[lane] = owner == nullptr ? ~0u : owner->rank;
  });
}

void Multicast(Warp& w, const Instruction& i) {
  const auto& site = *static_cast<const MulticastSite*>(i.data);
  const auto* ranks = w.Reg<uint32_t>(site.ranks);
  const uint32_t lanes = w.exec;
  for (uint32_t rank = 0; rank < DeviceShape::kMaxClusterBlocks; ++rank) {
    w.exec = 0;
    ForEachLane(lanes, [&](int lane) { w.exec |= (ranks[lane] >> rank & 1) << lane; });
    ForEachLane(w.exec, [&](int lane) {
      for (auto [there, here] : {std::pair{site.target_there, site.target},
                                 std::pair{site.barrier_there, site.barrier}}) {
        w.Reg<uint32_t>(there)[lane] =
            static_cast<uint32_t>(AddressOf(rank, w.Reg<uint32_t>(here)[lane]));
      }
    });
    for (const Instruction* part : {&site.copy, &site.arrive}) {
      if (w.exec != 0 && w.block->failure.code == 0) part->run(w, *part);
    }
  }
  w.exec = lanes;
}

}  // namespace softgpu
