// Device memory of one device: this client chooses the addresses and queues the mappings, so an
// allocation out of what is leased waits for nobody. Where things go is mempool's (mempool/pool.h);
// here are the calls that carry it out, the table of allocations, and the waits: an allocation
// waits for pending frees before it leases more, and only then is it out of memory.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/context/context.h"
#include "client-shim/support/function_ref.h"
#include "mempool/pool.h"
#include "wire/open.h"

namespace longwire::shim {

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as asked for
  uint64_t id = 0;     // never used again
  uint32_t context_number = 0;
  Context* context = nullptr;
  uint64_t work = 0;    // the session's newest when it was made
  bool shared = false;  // with other programs
  bool grown = false;   // a copy to it was held
};

class DeviceMemory : private mempool::Device {
 public:
  DeviceMemory(int server_ordinal, const wire::DeviceDescription& description,
               uint64_t granularity);

  // With `stream`, memory that rests only for that stream may be used again at once.
  CUresult Allocate(Context* context, uint64_t bytes, uint64_t* address, Stream* stream = nullptr);
  // Frees the allocation that starts at `address`; its memory rests until the points have passed.
  // The points' streams are given over. False if there is no such allocation.
  bool Free(uint64_t address, std::vector<StreamPoint> points, mempool::Freed freed);
  // Whether a copy of all of `source` to the start of `target` could be made by Move, `work` being
  // the session's newest; once for each target. Does not wait.
  bool MayMove(const Allocation& source, const Allocation& target, uint64_t work);
  // Frees `source` and puts its memory at the start of `target`, if the call that is kept under
  // `key` still is; it is not made then. No unfinished work may use that part of `target`.
  bool Move(const Allocation& source, const Allocation& target, uint64_t key);
  void MarkShared(uint64_t address);
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

  // Gives at least `bytes` bytes of leased memory back that no allocation uses, or all of it: spare
  // chunks as they are, mapped ones when the work before is finished and they are unmapped. The
  // bytes that are on their way. Not on the thread that reads what the worker sends.
  uint64_t GiveBackFree(uint64_t bytes);
  // What GiveBackFree could give at most.
  uint64_t FreeInChunks();
  int server_ordinal() const { return server_ordinal_; }

 private:
  // What the pool asks for, while it is used.
  int Lease(const std::vector<uint64_t>& bytes, std::vector<mempool::Chunk>* chunks) override;
  void Return(const std::vector<mempool::Chunk>& chunks) override;
  int Map(uint64_t address, const std::vector<mempool::Chunk>& chunks) override
      LONGWIRE_REQUIRES(mutex_);
  void Unmap(const mempool::Range& range) override;
  std::vector<mempool::Range> TakeUnmapped() override;
  int Remap(const mempool::Range& unmap, const std::vector<mempool::Chunk>& chunks,
            uint64_t moved) override LONGWIRE_REQUIRES(mutex_);
  bool Pending() override;
  void CountDone();
  bool Passed(const mempool::Mark& mark) override;
  bool PutAllBehind(const mempool::Mark& mark) override;
  void Drop(const mempool::Mark& mark) override;

  struct FirstLease {
    uint64_t address = 0;
    mempool::Chunk chunk;
  };
  void MapFirstLease() LONGWIRE_REQUIRES(mutex_);
  // Runs `ask` under the lock until it is answered, and waits without it for what it says. A
  // CUresult.
  CUresult Answered(FunctionRef<int()> ask);
  // Both release the lock while they wait.
  void WaitForWork() LONGWIRE_REQUIRES(mutex_);
  void WaitForDevice() LONGWIRE_REQUIRES(mutex_);
  bool TakeLive(uint64_t address, Allocation* allocation);
  // nullptr if it was freed, even if another one has its address since.
  Allocation* StillLive(const Allocation& allocation) LONGWIRE_REQUIRES(live_mutex_);

  const int server_ordinal_;
  base::Mutex mutex_;  // held while memory is leased, which waits for the server
  mempool::Pool pool_ LONGWIRE_GUARDED_BY(mutex_);
  // Other devices with access, as the session counts.
  std::vector<int> accessors_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<FirstLease> first_lease_ LONGWIRE_GUARDED_BY(mutex_);  // not mapped yet
  // Of the deferred copy that a remapping replaces.
  uint64_t moving_key_ LONGWIRE_GUARDED_BY(mutex_) = 0;

  // Of its own, so that a look-up never waits for a lease.
  base::Mutex live_mutex_{base::ranks::kLiveAllocations};
  std::map<uint64_t, Allocation> live_ LONGWIRE_GUARDED_BY(live_mutex_);  // by address
  uint64_t next_id_ LONGWIRE_GUARDED_BY(live_mutex_) = 1;

  base::Mutex unmapped_mutex_{base::ranks::kUnmapped};
  // Addresses that are free for other chunks.
  std::vector<mempool::Range> unmapped_ LONGWIRE_GUARDED_BY(unmapped_mutex_);
  // Unmappings and returns, each of which the worker answers.
  std::atomic<uint64_t> begun_{0}, done_{0};
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
