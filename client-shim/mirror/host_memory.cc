#include "client-shim/mirror/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/memory_sizes.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/copy/speculative_uploads.h"
#include "client-shim/memory/placed_memory.h"
#include "client-shim/mirror/file_mappings.h"
#include "client-shim/mirror/host_exposure.h"
#include "client-shim/mirror/shared_blocks.h"
#include "client-shim/session/pinned_segment.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/holding.h"
#include "client-shim/support/never_destroyed.h"
#include "client-shim/support/own_memory.h"

namespace longwire::shim {
namespace {

constexpr uint64_t kPage = base::kPageBytes;

struct PinnedRanges {
  base::Mutex mutex{base::ranks::kPinnedMemory};
  std::map<uint64_t, HostRange> by_address LONGWIRE_GUARDED_BY(mutex);
  uint64_t next_id LONGWIRE_GUARDED_BY(mutex) = 1;
};

PinnedRanges& TheRanges() {
  static NeverDestroyed<PinnedRanges> ranges;
  return *ranges;
}

uint64_t Pages(uint64_t bytes) { return base::RoundUp(bytes, kPage); }

// The range that contains the address.
std::map<uint64_t, HostRange>::iterator Holding(PinnedRanges& ranges, uint64_t address)
    LONGWIRE_REQUIRES(ranges.mutex) {
  return shim::Holding(ranges.by_address, address);
}

// Forgets the range that begins at the address if it is as `wanted` says. Its bytes, else 0.
template <class Wanted>
uint64_t Remove(uint64_t address, Wanted wanted) {
  PinnedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  auto found = ranges.by_address.find(address);
  if (found == ranges.by_address.end() || !wanted(found->second)) return 0;
  uint64_t bytes = found->second.bytes;
  ranges.by_address.erase(found);
  ForgetPinned(address);
  return bytes;
}

// Frees what was allocated at the address. No work may use it any more.
void GiveBack(uint64_t address, uint64_t bytes) {
  for (ClientSession* session : Sessions()) session->transfers().DropUploadsOf(address, bytes);
  ForgetUploadsOf(address, bytes);
  bool exposed = false;
  if (FindShared(address, &exposed)) {
    GiveShared(address);
  } else {
    HideRegistered(address);
    munmap(reinterpret_cast<void*>(address), Pages(bytes));
  }
}

// Whether all pages of the range are mapped.
bool IsMapped(uint64_t start, uint64_t bytes) {
  constexpr uint64_t kStep = uint64_t{256} << 20;
  std::vector<unsigned char> resident(kStep / kPage);
  uint64_t end = start + bytes;
  for (uint64_t at = base::RoundDown(start, kPage); at < end; at += kStep) {
    uint64_t part = std::min(end - at, kStep);
    if (mincore(reinterpret_cast<void*>(at), part, resident.data()) != 0 && errno == ENOMEM) {
      return false;
    }
  }
  return true;
}

}  // namespace

CUresult AllocateHost(uint64_t bytes, unsigned flags, void** address) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (bytes == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  return result == CUDA_SUCCESS ? AllocateHostIn(context, bytes, flags, address) : result;
}

CUresult AllocateHostIn(Context* context, uint64_t bytes, unsigned flags, void** address) {
  if (bytes > base::kMaxMemoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t start = 0;
  if (TakeShared(context, bytes, SharedUse::kPinned, &start) != CUDA_SUCCESS) {
    void* memory =
        mmap(nullptr, Pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    start = reinterpret_cast<uint64_t>(memory);
    if (!NotePinned(start, bytes)) {
      munmap(memory, Pages(bytes));
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  PinnedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  // With unified addressing, all pinned memory is mapped for the device.
  flags |= CU_MEMHOSTALLOC_DEVICEMAP;
  ranges.by_address[start] = {start, bytes, flags, false, false, ranges.next_id++, context->handle};
  *address = reinterpret_cast<void*>(start);
  return CUDA_SUCCESS;
}

CUresult ContextOfHost(const void* address, Context** context) {
  CUresult result = RequireContext(context);
  HostRange range;
  if (result != CUDA_ERROR_INVALID_CONTEXT) return result;
  if (!FindHost(reinterpret_cast<uint64_t>(address), &range)) return result;
  Context* own = FindContext(range.context);
  if (own == nullptr) return result;
  *context = own->home;
  return CUDA_SUCCESS;
}

CUresult FreeHost(void* address) {
  if (address == nullptr) return CUDA_SUCCESS;
  auto start = reinterpret_cast<uint64_t>(address);
  HostRange range;
  if (!FindHost(start, &range)) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOfHost(address, &context));
  uint64_t bytes = Remove(start, [](const HostRange& found) { return !found.registered; });
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  // Waits for copies that read or write it, as the driver's own free does.
  CUresult result = SynchronizeContext(context);
  GiveBack(start, bytes);
  return result;
}

void FreeIdleHost(uint64_t address, uint64_t id) {
  uint64_t bytes = Remove(address, [&](const HostRange& found) { return found.id == id; });
  if (bytes != 0) GiveBack(address, bytes);
}

CUresult RegisterHost(void* address, uint64_t bytes, unsigned flags) {
  // CU_MEMHOSTREGISTER_IOMEMORY is refused, as natively where the address is not I/O memory.
  constexpr unsigned kKnown =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  auto start = reinterpret_cast<uint64_t>(address);
  if (address == nullptr || bytes == 0 || (flags & ~kKnown) != 0 || start + bytes < start) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Addresses that are not mapped, or that belong to a device, cannot be pinned.
  bool of_device = DeviceOfAddress(start) >= 0 || IsLive(start);
  if (of_device || bytes > base::kMaxMemoryBytes || !IsMapped(start, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  LONGWIRE_TRY(RequireHealthyContext(&context));
  const bool of_file = IsFileMapping(start, bytes);
  PinnedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  auto taken = Holding(ranges, start);
  if (taken == ranges.by_address.end()) taken = ranges.by_address.lower_bound(start);
  if (taken != ranges.by_address.end() && taken->first < start + bytes) {
    return taken->second.registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                    : CUDA_ERROR_INVALID_VALUE;
  }
  // Else a pointer would mean both.
  if (!NotePinned(start, bytes)) return CUDA_ERROR_INVALID_VALUE;
  ranges.by_address[start] = {start,          bytes, flags, true, of_file, ranges.next_id++,
                              context->handle};
  if (of_file) NoteFileMemory(start, bytes, &context->home->once, CUDA_ERROR_NOT_SUPPORTED);
  return CUDA_SUCCESS;
}

CUresult UnregisterHost(void* address) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostRange range;
  auto start = reinterpret_cast<uint64_t>(address);
  if (!FindHost(start, &range)) {
    bool of_devices = DeviceOfAddress(start) >= 0 || IsLive(start);
    return of_devices ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  Context* context = nullptr;
  LONGWIRE_TRY(ContextOfHost(address, &context));
  // Inside a range, or in memory that was allocated, the pointer is wrong.
  uint64_t bytes = Remove(start, [](const HostRange& found) { return found.registered; });
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = SynchronizeContext(context);
  for (ClientSession* session : Sessions()) session->transfers().DropUploadsOf(start, bytes);
  ForgetUploadsOf(start, bytes);
  HideRegistered(start);
  if (range.of_file) ForgetFileMemory(start);
  return result;
}

bool FindHost(uint64_t address, HostRange* range) {
  PinnedRanges& ranges = TheRanges();
  base::MutexLock lock(ranges.mutex);
  auto found = Holding(ranges, address);
  if (found == ranges.by_address.end()) return false;
  *range = found->second;
  return true;
}

bool IsPinned(const void* address, uint64_t bytes) {
  HostRange range;
  auto start = reinterpret_cast<uint64_t>(address);
  return FindHost(start, &range) && bytes <= range.bytes - (start - range.address);
}

}  // namespace longwire::shim
