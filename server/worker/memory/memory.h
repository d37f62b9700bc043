// The session's physical chunks, which keepers have lent, and their mappings in the windows. Chunks
// have numbers of the session, since each keeper has its own numbers.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/completion/links.h"
#include "server/worker/memory/carried_memory.h"
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
  // `links`, if any, gets the tokens by which memory is shared.
  Memory(const DriverTable& driver, std::vector<Device>& devices, Links* links = nullptr)
      : driver_(driver), devices_(devices), links_(links) {}

  // Waits for the keeper. Adds the chunks' ids and sizes. `spare`: not needed now.
  CUresult Lease(int32_t device, const std::vector<uint64_t>& bytes, bool spare,
                 std::vector<wire::LeasedChunk>* leased, std::string* why = nullptr);
  // Shares chunks of one device with other sessions of the tenant on this server.
  CUresult Share(const std::vector<uint64_t>& chunks, SharedToken* token);
  // Borrows the chunks of a token, which may be of any device of this session. They are returned as
  // leased ones are.
  CUresult Borrow(const SharedToken& token, int32_t* device,
                  std::vector<wire::LeasedChunk>* borrowed);
  // Returns chunks to their keepers. They must not be mapped.
  CUresult Return(const std::vector<uint64_t>& chunks);
  // Reports to the keeper how much the client has given back of the requested memory.
  CUresult Reclaimed(int32_t device, const keeper::Reclaimed& answer);
  CUresult Map(int32_t device, uint64_t address, const std::vector<uint64_t>& chunks);
  // True if one of the chunks was never mapped: the driver then needs about a millisecond to map
  // it.
  bool AnyIsNew(const std::vector<uint64_t>& chunks);
  CUresult Unmap(uint64_t address, uint64_t bytes);
  // Replaces the chunks in the range, which consists of whole chunks, by these chunks. The first
  // `moved` bytes of the new chunks are mapped elsewhere, too.
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  CUresult Remap(int32_t device, const Range& range, const std::vector<uint64_t>& chunks,
                 uint64_t moved);
  // Sets the access of a device of the session to whole mapped chunks.
  CUresult SetAccess(uint64_t address, uint64_t bytes, int32_t device, bool access);
  // With `may_ask` false it does not wait: kNotYet if the keeper would have to be asked.
  CUresult Info(int32_t device, bool may_ask, uint64_t* free, uint64_t* total);

  // For swapping (memory_swapping.cc), in sessions on one device; chunks have the keeper's numbers.
  // LetGo unmaps the chunks, TakeBack maps them again at the same addresses. Nothing may access the
  // memory meanwhile.
  CUresult LetGo(const std::vector<uint64_t>& keeper_chunks);
  CUresult TakeBack(std::vector<KeeperClient::Chunk>& chunks);
  size_t away() const { return away_; }  // chunks

  // For sessions that move (memory_moving.cc), on one device.
  CarriedMemory Carry();
  // Chunks with bytes to which no mapping gives access. Show maps one at an address beside the
  // windows, until Hide.
  std::vector<CarriedChunk> Hidden();
  CUresult Show(uint64_t chunk, CUdeviceptr* address);
  void Hide(CUdeviceptr address, uint64_t bytes);
  // Leases and maps what the old worker has, and returns what it has no more and what was leased
  // with the opening. What stays is left as it is: again and again, while the old worker runs.
  // *why: what failed, for people. Before the session starts.
  CUresult Restore(const CarriedMemory& carried, std::string* why);
  // Keepers copy chunks between devices (memory_filling.cc): a chunk's descriptor for that, and the
  // copy to the chunk that is mapped there.
  CUresult FileOf(uint64_t chunk, wire::Descriptor* file);
  CUresult StartFill(uint64_t address, uint64_t bytes, const wire::Descriptor& from,
                     uint64_t* request);
  CUresult EndFill(uint64_t request);

  // Bytes that Map would cover; 0 if a chunk is unknown.
  uint64_t BytesOf(const std::vector<uint64_t>& chunks);
  // The device of the chunk mapped at the address, as the client counts; -1 if there is none.
  int32_t DeviceOf(uint64_t address);

  // For rules that check addresses (mapped_ranges.cc). False if the address lies in a window, but
  // not in memory nor at its end; or if not all bytes lie in memory. *nearest is then the nearest
  // mapping, of 0 bytes if there is none. Addresses outside the windows are not judged.
  bool MayPointAt(uint64_t address, Range* nearest);
  bool MayAccess(uint64_t address, uint64_t bytes, Range* nearest);

 private:
  struct Chunk {
    CUmemGenericAllocationHandle handle = 0;
    uint64_t bytes = 0;
    int32_t device = 0;
    uint64_t keeper_chunk = 0;  // as its keeper counts
    uint32_t mappings = 0;      // a chunk can be mapped in two places while it moves
    bool away = false;          // swapped out: the driver has no handle and no mapping
    wire::Descriptor lent;  // the keeper's descriptor, until it is imported at the first mapping
  };
  struct Mapping {
    uint64_t bytes = 0;
    uint64_t chunk = 0;
    bool access = true;  // for the session's device, where it has only one
  };
  // Adds lent chunks to the session. If that fails they are returned to the keeper.
  CUresult Add(int32_t device, std::vector<KeeperClient::Chunk>& granted,
               std::vector<wire::LeasedChunk>* leased);
  CUresult Import(Chunk* chunk);
  CUresult DropOthers(const CarriedMemory& carried);
  CUresult LeaseCarried(const CarriedMemory& carried, std::string* why);
  CUresult MapCarried(const CarriedMapping& one, std::string* why);
  CUresult WithRoom(const std::function<CUresult()>& call);
  // Releases the driver's handle, if any, of a chunk that is mapped nowhere.
  CUmemGenericAllocationHandle TakeHandle(Chunk* chunk);
  Range Nearest(uint64_t address) const LONGWIRE_REQUIRES(mutex_);
  bool InWindow(uint64_t address, uint64_t bytes) const;
  bool CoversWholeChunks(uint64_t address, uint64_t bytes) const LONGWIRE_REQUIRES(mutex_);
  // Maps the chunks, one behind the other, at free addresses. Releases the lock during driver
  // calls.
  CUresult MapRange(int32_t device, uint64_t address, const std::vector<uint64_t>& chunks)
      LONGWIRE_REQUIRES(mutex_);
  // The driver calls of a map. Stops at the first error; *mapped bytes from the address on are then
  // mapped.
  CUresult MapChunks(uint64_t address, const std::vector<Chunk*>& chunks, uint64_t* mapped);
  CUresult Access(uint64_t address, uint64_t bytes, int32_t device, CUmemAccess_flags flags);
  std::vector<std::pair<uint64_t, Mapping>> TakeMappings(uint64_t address, uint64_t bytes)
      LONGWIRE_REQUIRES(mutex_);
  CUresult ImportHandle(const wire::Descriptor& memory, CUmemGenericAllocationHandle* handle);
  std::unordered_map<uint64_t, uint64_t> ByKeeperChunk() const LONGWIRE_REQUIRES(mutex_);
  std::unordered_multimap<uint64_t, uint64_t> AddressesByChunk() const LONGWIRE_REQUIRES(mutex_);
  // Releases the lock during driver calls.
  void UnmapRange(uint64_t address, uint64_t bytes) LONGWIRE_REQUIRES(mutex_);

  const DriverTable& driver_;
  std::vector<Device>& devices_;
  base::Mutex mutex_{base::ranks::kMemory};
  std::map<uint64_t, Chunk> chunks_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t next_chunk_ LONGWIRE_GUARDED_BY(mutex_) = 1;
  std::atomic<size_t> away_{0};
  Links* links_;
  std::atomic<size_t> lent_{0};  // chunks that the driver has not imported
  std::map<uint64_t, Mapping> mappings_ LONGWIRE_GUARDED_BY(mutex_);  // by address
  bool restored_ = false;  // chunks have the old worker's numbers
};

}  // namespace longwire::worker
