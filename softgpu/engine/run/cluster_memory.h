// Shared memory of all blocks of a cluster. A generic address is where the memory lies; one in the
// window of shared memory is an offset, above it whose: 0 the block's own, else rank + 1.
#pragma once

#include <string>

#include "softgpu/engine/run/machine.h"

namespace softgpu {

constexpr int kRankShift = 24;
constexpr uint64_t kOffsetMask = (uint64_t{1} << kRankShift) - 1;

// Where the shared memory that an address in the window names begins; 0: there is no such block.
uint64_t SharedBaseOf(const Warp& w, uint64_t address);
// The block of the cluster in whose shared memory a generic address lies, or null.
const Block* OwnerOf(const Warp& w, uint64_t generic);
// Addresses of blocks that do not exist keep their rank, in a range where every access faults.
uint64_t SharedToGeneric(const Warp& w, uint64_t address);
uint64_t GenericToShared(const Warp& w, uint64_t generic);
// A sentence if the generic address is of a block that does not exist, else nothing.
std::string AbsentBlock(const Warp& w, uint64_t generic);

// Makes host addresses of the executing lanes' addresses in the window, with their bounds; false
// after a fault. For those that do not all lie in the block's own memory.
bool LocateInCluster(Warp& w, const Instruction& ins, uint64_t* lane, uint64_t bytes, uint64_t* low,
                     uint64_t* high);

// Handlers. op: result, address, rank.
void MapShared(Warp& w, const Instruction& i);   // mapa, in the window
void MapGeneric(Warp& w, const Instruction& i);  // mapa of generic addresses
void RankOfShared(Warp& w, const Instruction& i);
void RankOfGeneric(Warp& w, const Instruction& i);

// Copies to the same place of several blocks, one after the other.
struct MulticastSite {
  OperandOffset ranks = 0;                // a bit per block
  OperandOffset target = 0, barrier = 0;  // addresses in the window, as the program has them
  OperandOffset target_there = 0, barrier_there = 0;  // written: the same of one block
  Instruction copy, arrive;
};
void Multicast(Warp& w, const Instruction& i);  // data: a MulticastSite

}  // namespace softgpu
