// Memory with the same addresses in this process and on the device. A block is a range of a
// device's window in which the program's memory is mapped and, while it is exposed, device memory
// on the other side. Small allocations share a block, so that little memory has to be compared.
//
// Live blocks are parts of the segment that kernels reach itself (pinned_segment.h). They lie in no
// window, always count as exposed, and nothing of them is mirrored.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"

namespace longwire::shim {

struct Mirror;

// Managed memory is exposed from the start, pinned memory when device code needs it.
enum class SharedUse { kManaged, kPinned };

// CUDA_ERROR_OUT_OF_MEMORY if there are no addresses or, for managed memory, no device memory.
CUresult TakeShared(Context* context, uint64_t bytes, SharedUse use, uint64_t* address);
// Work that uses it must have finished.
void GiveShared(uint64_t address);

// Whether there are blocks that are not exposed.
bool AnyHiddenBlocks();

// A range that contains all blocks there ever were, but live ones: a quick test for words that lie
// in none.
struct SharedSpan {
  uint64_t first = 0;
  uint64_t bytes = 0;
};
SharedSpan SpanOfShared();

// Exposes the address's block: maps device memory at its addresses and mirrors it.
CUresult ExposeShared(uint64_t address);
// The offset of the range in the segment that is shared with the worker (pinned_segment.h). False
// if it does not lie there.
bool FindPart(uint64_t address, uint64_t bytes, uint64_t* offset);
// False if the address lies in no block.
bool FindShared(uint64_t address, bool* exposed);
// *reaches: whether the device can access the block's device memory. False if the address lies in
// no exposed block.
bool FindSharedAccess(uint64_t address, int device, bool* reaches);

// When a context ended: removes its managed memory, and hides its pinned memory, which the program
// keeps.
void ForgetSharedBlocks(uint32_t context_number);

// Maps device memory at the addresses, with access for all devices that can have it.
CUresult MapSharedChunks(Context* context, uint64_t address, uint64_t bytes,
                         std::vector<uint64_t>* chunks, std::vector<int>* accessors);
void UnmapSharedChunks(int device, uint64_t address, uint64_t bytes,
                       const std::vector<uint64_t>& chunks);

}  // namespace longwire::shim
