// Memory at addresses that are the same in this process and on the device: stretches of a device's
// window in which the program's own memory is mapped, and, while the device can reach it, the
// device's. Small requests share a block, so that what is compared is little and dense.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "client-shim/context/context.h"

namespace longwire::shim {

struct Mirror;

// Managed memory is on the device from the start; pinned memory only once it is exposed.
enum class SharedUse { kManaged, kPinned };

// CUDA_ERROR_OUT_OF_MEMORY if there are no addresses or, for managed memory, no device memory.
CUresult TakeShared(Context* context, uint64_t bytes, SharedUse use, uint64_t* address);
// Work that uses it must be over.
void GiveShared(uint64_t address);

// Whether there are blocks that are not exposed.
bool AnyHiddenBlocks();

// Every block that there was lies in it: a quick answer for the many words that lie in none.
struct SharedSpan {
  uint64_t first = 0;
  uint64_t bytes = 0;
};
SharedSpan SpanOfShared();

// Puts the block's device memory where the address is, unless it is there already.
CUresult ExposeShared(uint64_t address);
// Where the range lies in the segment that the worker has, too (pinned_segment.h). False if it does
// not.
bool FindPart(uint64_t address, uint64_t bytes, uint64_t* offset);
// False if the address lies in no block.
bool FindShared(uint64_t address, bool* exposed);
// Whether a device's work may touch the block's device memory. False if it is in none.
bool FindSharedAccess(uint64_t address, int device, bool* reaches);

// When a context ended. Managed memory is gone; pinned memory stays the program's.
void ForgetSharedBlocks(uint32_t context_number);

// Device memory at chosen addresses, for all devices that can reach it.
CUresult MapSharedChunks(Context* context, uint64_t address, uint64_t bytes,
                         std::vector<uint64_t>* chunks, std::vector<int>* accessors);
void UnmapSharedChunks(int device, uint64_t address, uint64_t bytes,
                       const std::vector<uint64_t>& chunks);

}  // namespace longwire::shim
