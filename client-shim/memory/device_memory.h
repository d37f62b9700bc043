// The memory of one device. The client chooses the addresses and queues the mappings, so an
// allocation that fits into leased chunks waits for nothing. mempool/pool.h decides where
// allocations go; here are the calls that do it, the table of allocations, and the waits. Before an
// allocation fails for lack of memory it waits for pending frees and tries to lease more.
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
  uint64_t work = 0;    // the session's newest work at the time of the allocation
  bool shared = false;  // with other programs
  bool grown = false;   // a copy to it was deferred
};

class DeviceMemory : private mempool::Device {
 public:
  DeviceMemory(ClientSession& session, int server_ordinal,
               const wire::DeviceDescription& description, uint64_t granularity);

  // With `stream`, memory that was freed in that stream may be used again at once.
  CUresult Allocate(Context* context, uint64_t bytes, uint64_t* address, Stream* stream = nullptr);
  // Frees the allocation that starts at `address`. Its memory is not used again before the points
  // have passed; their streams' references are taken over. False if there is no such allocation.
  bool Free(uint64_t address, std::vector<StreamPoint> points, mempool::Freed freed);
  // Whether Move could replace a copy of all of `source` to the start of `target`. `work` is the
  // session's newest work. True at most once for each target. Does not wait.
  bool MayMove(const Allocation& source, const Allocation& target, uint64_t work);
  // Replaces the call that is deferred under `key`, if it still is: frees `source` and maps its
  // memory at the start of `target`. No unfinished work may use that part of `target`.
  bool Move(const Allocation& source, const Allocation& target, uint64_t key);
  void MarkShared(uint64_t address);
  // The allocation that `address` lies in.
  bool Find(uint64_t address, Allocation* allocation);
  // Frees all of a context's allocations once the worker has ended the context.
  void FreeContext(uint32_t context_number);
  // Addresses and chunks for the program's own mappings. The hint is used if it is free.
  bool TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address);
  void GiveAddresses(uint64_t address, uint64_t bytes);
  // The chunks in which an allocation lies, and where the first of them starts.
  bool ChunksUnder(const Allocation& allocation, std::vector<uint64_t>* chunks, uint64_t* start);
  CUresult LeaseChunks(uint64_t bytes, std::vector<uint64_t>* chunks);
  void ReturnChunks(const std::vector<uint64_t>& chunks);
  // Grants another device (by its number in the session) access to all allocations, present and
  // future, or revokes it.
  void SetPeerAccess(int server_device, bool access);
  // Free bytes that only this session can use.
  uint64_t FreeLeased();

  // Gives back at least `bytes` bytes of leased memory that no allocation uses, or all there is:
  // spare chunks at once, mapped ones when earlier work has finished and they are unmapped. Returns
  // the number of bytes. Not for the thread that reads the session's records.
  uint64_t GiveBackFree(uint64_t bytes);
  // The bytes that GiveBackFree could give back. If `watch` is not 0 and no free waits for work, a
  // later change is reported under this number, once; *watched is true then.
  uint64_t FreeInChunks(uint64_t watch = 0, bool* watched = nullptr);
  ClientSession& session() const { return session_; }
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
  // Calls `ask` with the lock held until it returns a CUresult. For other values (mempool::Pool's
  // kWait…) waits without the lock and calls it again.
  CUresult Answered(FunctionRef<int()> ask);
  // Reports, if that was asked for, that other memory is free now. The lock is not held.
  void Changed();
  // Both release the lock while they wait.
  void WaitForWork() LONGWIRE_REQUIRES(mutex_);
  void WaitForDevice() LONGWIRE_REQUIRES(mutex_);
  bool TakeLive(uint64_t address, Allocation* allocation);
  // nullptr if it was freed, even if another one has its address since.
  Allocation* StillLive(const Allocation& allocation) LONGWIRE_REQUIRES(live_mutex_);

  ClientSession& session_;
  const int server_ordinal_;
  base::Mutex mutex_;  // held while memory is leased, which waits for the server
  mempool::Pool pool_ LONGWIRE_GUARDED_BY(mutex_);
  // Other devices with access, as the session counts.
  std::vector<int> accessors_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<FirstLease> first_lease_ LONGWIRE_GUARDED_BY(mutex_);  // not mapped yet
  std::atomic<uint64_t> watch_{0};  // the number under which a change is reported; 0: none is
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

// Grants or revokes a device's access to mapped chunks.
void SubmitAccess(ClientSession& session, uint64_t address, uint64_t bytes, int server_device,
                  bool access);

// At start, in the order of the visible devices.
void CreateDeviceMemory(ClientSession& session, int server_ordinal);
DeviceMemory* MemoryOf(int device);
// The allocation that contains the address, on any device.
bool FindAllocation(uint64_t address, Allocation* allocation);
// When a context ended.
void ForgetContextMemory(uint32_t context_number);

}  // namespace longwire::shim
