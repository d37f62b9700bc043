// Physical chunks lent by the keepers, and what is mapped where in the session's windows. Chunks
// have the session's numbers: each keeper counts for itself.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/memory/keeper_client.h"
#include "server/worker/support/driver.h"
#include "wire/open.h"

namespace longwire::worker {

// A device of the session, in the client's order.
struct Device {
  CUdevice handle = 0;  // as the driver counts
  CUcontext primary = nullptr;
  uint64_t total_memory = 0;
  wire::Window window;
  std::unique_ptr<KeeperClient> keeper;
};

class Memory {
 public:
  Memory(const DriverTable& driver, std::vector<Device>& devices)
      : driver_(driver), devices_(devices) {}

  // Waits for the keeper. Adds the chunks' ids and sizes. `spare`: not needed now.
  CUresult Lease(int32_t device, const std::vector<uint64_t>& bytes, bool spare,
                 std::vector<wire::LeasedChunk>* leased);
  // Lets other sessions of the tenant on this server have the chunks, which are of one device.
  CUresult Share(const std::vector<uint64_t>& chunks, SharedToken* token);
  // The chunks of a token, of whichever device of this session; they are returned like leased ones.
  CUresult Borrow(const SharedToken& token, int32_t* device,
                  std::vector<wire::LeasedChunk>* borrowed);
  // The chunks are not mapped any more.
  CUresult Return(const std::vector<uint64_t>& chunks);
  // The client gave back what the keeper asked for, or what it had of that.
  CUresult Reclaimed(int32_t device, const keeper::Reclaimed& answer);
  CUresult Map(int32_t device, uint64_t address, const std::vector<uint64_t>& chunks);
  // Mapping them takes the driver a millisecond: one of them was not mapped before.
  bool AnyIsNew(const std::vector<uint64_t>& chunks);
  CUresult Unmap(uint64_t address, uint64_t bytes);
  // Other chunks take the place of what is mapped in the range, which is whole chunks. The first
  // `moved` bytes of them are mapped elsewhere too.
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  CUresult Remap(int32_t device, const Range& range, const std::vector<uint64_t>& chunks,
                 uint64_t moved);
  // Of whole mapped chunks, by any device of the session.
  CUresult SetAccess(uint64_t address, uint64_t bytes, int32_t device, bool access);
  CUresult Info(int32_t device, uint64_t* free, uint64_t* total);

  // For the keeper to move (memory_swapping.cc); of a session on one device, by the keeper's
  // numbers. LetGo undoes the chunks' mappings, TakeBack makes them again at the same addresses.
  // Nothing may touch the memory meanwhile.
  CUresult LetGo(const std::vector<uint64_t>& keeper_chunks);
  CUresult TakeBack(std::vector<KeeperClient::Chunk>& chunks);
  size_t away() const { return away_; }  // chunks

  // Bytes that Map would cover; 0 if a chunk is unknown.
  uint64_t BytesOf(const std::vector<uint64_t>& chunks);
  // The device of the chunk mapped at the address, as the client counts; -1 if there is none.
  int32_t DeviceOf(uint64_t address);

 private:
  struct Chunk {
    CUmemGenericAllocationHandle handle = 0;
    uint64_t bytes = 0;
    int32_t device = 0;
    uint64_t keeper_chunk = 0;  // as its keeper counts
    uint32_t mappings = 0;      // a chunk can be mapped in two places while it moves
    bool away = false;          // the driver has neither handle nor mappings of it
    wire::Descriptor lent;      // instead of the handle, until the first mapping
  };
  struct Mapping {
    uint64_t bytes = 0;
    uint64_t chunk = 0;
    bool access = true;  // for the session's device, where it has only one
  };
  // What a keeper lent becomes the session's; if that fails, goes back.
  CUresult Add(int32_t device, std::vector<KeeperClient::Chunk>& granted,
               std::vector<wire::LeasedChunk>* leased);
  CUresult Import(Chunk* chunk);
  // Of a chunk that is mapped nowhere: what the driver has of it, if anything.
  CUmemGenericAllocationHandle TakeHandle(Chunk* chunk);
  bool InWindow(uint64_t address, uint64_t bytes) const;
  bool CoversWholeChunks(uint64_t address, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  // Maps the chunks, one after the other, where nothing is mapped. Releases the lock while the
  // driver works.
  CUresult MapRange(int32_t device, uint64_t address, const std::vector<uint64_t>& chunks)
      LONGWIRE_REQUIRES(mutex_);
  // What the driver has to do for that; stops at the first error, *mapped bytes from the address
  // on.
  CUresult MapChunks(uint64_t address, const std::vector<Chunk*>& chunks, uint64_t* mapped);
  CUresult Access(uint64_t address, uint64_t bytes, int32_t device, CUmemAccess_flags flags);
  std::vector<std::pair<uint64_t, Mapping>> TakeMappings(uint64_t address, uint64_t bytes)
      LONGWIRE_REQUIRES(mutex_);
  CUresult ImportHandle(const wire::Descriptor& memory, CUmemGenericAllocationHandle* handle);
  std::unordered_map<uint64_t, uint64_t> ByKeeperChunk() const LONGWIRE_REQUIRES(mutex_);
  std::unordered_multimap<uint64_t, uint64_t> AddressesByChunk() const LONGWIRE_REQUIRES(mutex_);
  // Releases the lock while the driver works.
  void UnmapRange(uint64_t address, uint64_t bytes) LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  std::vector<Device>& devices_;
  base::Mutex mutex_{base::ranks::kMemory};
  std::map<uint64_t, Chunk> chunks_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t next_chunk_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  std::atomic<size_t> away_{0};
  std::atomic<size_t> lent_{0};  // chunks that the driver has not imported
  std::map<uint64_t, Mapping> mappings_ LONGWIRE_GUARDED_BY(mutex_);  // by address
};

}  // namespace longwire::worker
