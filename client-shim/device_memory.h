// Device memory of one device: this client chooses the addresses and queues the mappings, so an
// allocation out of what is leased waits for nobody.
//
// Physical memory comes in leased chunks, mapped whole into the device's window and kept mapped.
// Free stretches of mapped addresses are used best fit first; small allocations share slabs. What
// is freed rests until the work queued before the free has finished on every stream of its context.
// When nothing fits, in this order: rested frees are awaited, free chunks are mapped anew side by
// side, more memory is leased; and only then it is out of memory.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "client-shim/context.h"
#include "client-shim/free_ranges.h"
#include "wire/open.h"

namespace longwire::shim {

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as asked for
  uint64_t id = 0;     // never used again
  uint32_t context_number = 0;
  Context* context = nullptr;
};

class DeviceMemory {
 public:
  DeviceMemory(int server_ordinal, const wire::DeviceDescription& description,
               uint64_t granularity);

  // With `stream`, memory that rests only for that stream may be used again at once.
  CUresult Allocate(Context* context, uint64_t bytes, uint64_t* address, Stream* stream = nullptr);
  // Frees the allocation that starts at `address`; its memory rests until the points have passed.
  // The points' streams are given over. False if there is no such allocation.
  bool Free(uint64_t address, std::vector<StreamPoint> points);
  // The allocation that `address` lies in.
  bool Find(uint64_t address, Allocation* allocation);
  // All of a context's allocations at once, when the worker is done with it.
  void FreeContext(uint32_t context_number);
  // Addresses and physical memory for the program's own mappings. A hint is followed if it is free.
  bool TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address);
  void GiveAddresses(uint64_t address, uint64_t bytes);
  // The chunks in which an allocation lies, and where the first of them starts.
  bool ChunksUnder(const Allocation& allocation, std::vector<uint64_t>* chunks, uint64_t* start);
  CUresult LeaseChunks(uint64_t bytes, std::vector<uint64_t>* chunks);
  void ReturnChunks(const std::vector<uint64_t>& chunks);
  // Lets another device (as the session counts) access all allocations, present and later ones, or
  // none of them any more.
  void SetPeerAccess(int server_device, bool access);
  // Free bytes that only this session can use.
  uint64_t FreeLeased();

 private:
  struct Chunk {
    uint64_t id = 0;
    uint64_t bytes = 0;
  };
  struct Resting {
    uint64_t address = 0;
    uint64_t bytes = 0;
    std::vector<StreamPoint> points;
  };
  struct Slab {
    FreeRanges free;
  };

  bool Take(uint64_t bytes, uint64_t* address);
  bool TakeRested(uint64_t bytes, Stream* stream, uint64_t* address);
  bool TakeSmall(uint64_t bytes, uint64_t* address);
  void GiveBack(uint64_t address, uint64_t bytes);
  bool CollectRested();
  bool WaitForRested(std::unique_lock<std::mutex>& lock);
  bool WouldFitRested(uint64_t bytes);
  CUresult Grow(uint64_t bytes);
  CUresult Lease(const std::vector<uint64_t>& sizes, std::vector<Chunk>* chunks);
  void Return(const std::vector<Chunk>& chunks);
  std::vector<Chunk> UnmapFreeChunks(uint64_t wanted);
  void MapFirstLease();
  void Map(uint64_t address, const std::vector<Chunk>& chunks);
  void SubmitMap(uint64_t address, const std::vector<uint64_t>& chunks, uint64_t bytes);
  uint64_t RoundUp(uint64_t bytes) const;

  const int server_ordinal_;
  const uint64_t granularity_;
  std::mutex mutex_;
  std::vector<int> accessors_;           // other devices with access, as the session counts
  FreeRanges window_;                    // addresses of the window that nothing is mapped at
  FreeRanges free_;                      // mapped and free
  std::map<uint64_t, Chunk> mapped_;     // by address
  std::map<uint64_t, Allocation> live_;  // by address
  std::map<uint64_t, Slab> slabs_;       // by address, for small allocations
  std::vector<Resting> resting_;
  std::vector<uint64_t> unmapped_lease_;  // of the first lease, addresses not yet mapped
  uint64_t next_id_ = 1;

  std::mutex unmapped_mutex_;                            // inner to everything
  std::vector<std::pair<uint64_t, uint64_t>> unmapped_;  // address, bytes: free for other chunks
};

// Lets a device of the session access mapped chunks, or not.
void SubmitAccess(uint64_t address, uint64_t bytes, int server_device, bool access);

// At start, in the order of the visible devices.
void CreateDeviceMemory(int server_ordinal, const wire::DeviceDescription& description,
                        uint64_t granularity);
DeviceMemory* MemoryOf(int device);
// The allocation that holds the address, on any device.
bool FindAllocation(uint64_t address, Allocation* allocation);
// When a context ended.
void ForgetContextMemory(uint32_t context_number);

}  // namespace longwire::shim
