// What lies where in the arena: reservations, mapped chunks, and the allocations made from them;
// and which devices may access what. Host memory that programs register elsewhere is listed here
// too; all devices reach it at its own address.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "softgpu/driver/memory/physical_memory.h"
#include "softgpu/driver/memory/range_allocator.h"
#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/memory/arena.h"

namespace softgpu {

enum class MemoryKind { kDevice, kPinned, kRegistered };

// Marks memory that belongs to a graph: freeing it outside the graph leaves it to the graph.
constexpr unsigned kGraphOwned = 1u << 31;

struct Allocation {
  uint64_t address = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  Context* context = nullptr;  // owner; null for mapped chunks
  unsigned flags = 0;
  uint64_t id = 0;
  bool small = false;        // part of a shared chunk
  bool synchronous = false;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
};

class AddressSpace {
 public:
  static AddressSpace& Get();

  // Reservations. `hint` is honoured where it is free; 0 if nothing fits.
  uint64_t Reserve(size_t bytes, uint64_t alignment, uint64_t hint);
  CUresult Unreserve(uint64_t address, size_t bytes);
  CUresult Map(uint64_t address, size_t bytes, std::shared_ptr<Chunk> chunk);
  CUresult Unmap(uint64_t address, size_t bytes);
  // Gives whole mappings to `added`, takes them away from `removed`, leaves other devices' access.
  CUresult SetAccess(uint64_t address, size_t bytes, DeviceSet added, DeviceSet removed);
  std::shared_ptr<Chunk> FindChunk(uint64_t address);
  std::optional<DeviceSet> AccessOf(uint64_t address);  // nothing if not mapped
  // Lets `accessor` access all plain allocations of `owner`, present and later ones, or only those
  // of its own again. Mappings that the program makes itself have their own access.
  void SetPeerAccess(int owner, int accessor, bool enabled);

  // Allocations; 0 when out of memory. Contents are whatever the memory held before.
  uint64_t Allocate(int device, size_t bytes, uint64_t alignment, Context* context,
                    unsigned flags = 0);
  uint64_t AllocatePinned(size_t bytes, unsigned flags, Context* context);
  // Host memory that counts as the device's: kernels of all devices and the program share it.
  uint64_t AllocateManaged(size_t bytes, Context* context);
  bool IsManaged(uint64_t address);
  CUresult Register(uint64_t address, size_t bytes, unsigned flags, Context* context);
  CUresult Free(uint64_t address, MemoryKind kind);
  void FreeAllOf(Context* context);
  // True if the address is in a device's plain allocation, not in a mapping of the program's own.
  bool IsPlain(uint64_t address);
  // False if no allocation holds the address.
  bool SetSynchronous(uint64_t address, bool on);
  // The allocation (or mapped chunk) that holds `address`.
  std::optional<Allocation> Find(uint64_t address);

  // Number of operations that streams are running now; see Detach.
  std::atomic<int> running_work{0};

 private:
  struct Mapping {
    size_t bytes = 0;
    std::shared_ptr<Chunk> chunk;  // null for pinned host memory
    DeviceSet access = 0;
    bool plain = false;  // of an allocation: peers of its device may access it
  };
  using Mappings = std::map<uint64_t, Mapping>;

  AddressSpace();
  bool Attach(uint64_t address, size_t bytes, Mapping mapping) LONGWIRE_REQUIRES(mutex_);
  // Attaches memory of a device that its peers may access too.
  bool AttachPlain(uint64_t address, std::shared_ptr<Chunk> chunk) LONGWIRE_REQUIRES(mutex_);
  void ChangeAccess(uint64_t address, Mapping& mapping, DeviceSet access) LONGWIRE_REQUIRES(mutex_);
  void Detach(Mappings::iterator mapping) LONGWIRE_REQUIRES(mutex_);
  const Mapping* FindMapping(uint64_t address) LONGWIRE_REQUIRES(mutex_);  // null if there is none
  bool InReservation(uint64_t address, size_t bytes) LONGWIRE_REQUIRES(mutex_);
  // True if [address, address + bytes) is exactly a run of whole mappings.
  bool CoversWholeMappings(uint64_t address, size_t bytes) LONGWIRE_REQUIRES(mutex_);
  bool GrowSmallHeap(int device) LONGWIRE_REQUIRES(mutex_);
  uint64_t AllocateHost(MemoryKind kind, size_t bytes, unsigned flags, Context* context)
      LONGWIRE_REQUIRES(mutex_);
  void FreeLocked(std::map<uint64_t, Allocation>::iterator allocation) LONGWIRE_REQUIRES(mutex_);

  base::Mutex mutex_{base::ranks::kSoftgpuAddressSpace};
  RangeAllocator ranges_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, size_t> reservations_ LONGWIRE_GUARDED_BY(mutex_);  // address -> bytes
  Mappings mappings_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, Allocation> allocations_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, size_t> managed_ LONGWIRE_GUARDED_BY(mutex_);  // address -> bytes
  // Per device: parts of mapped chunks; the devices that may access its memory, itself included.
  std::vector<RangeAllocator> small_heaps_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<DeviceSet> accessors_ LONGWIRE_GUARDED_BY(mutex_);
  uint64_t next_id_ LONGWIRE_GUARDED_BY(mutex_) = 1;
};

}  // namespace softgpu
