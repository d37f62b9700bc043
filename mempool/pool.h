// One program's memory on one device. The pool chooses the addresses of allocations, and places
// them in physical chunks that are leased to it. It needs only leases, maps, unmaps and returns
// from the device (device.h). It knows no locks, threads, sessions or CUDA: the owner calls it
// under a lock of its own.
//
// Leased memory is in one of:
//   arena    mapped; allocations below 64 MiB share it (arena.h), small ones in slabs (slabs.h)
//   blocks   mapped; an allocation of at least 64 MiB has chunks of its own (blocks.h). They stay
//            together when it is freed, for the next allocation of this size. A block of 64 MiB may
//            become a chunk of the arena, and a free chunk of the arena such a block
//   spares   mapped nowhere (spare_chunks.h)
// Freed memory rests until the work before the free is finished (resting_frees.h), unless it is
// allocated again at once and the device can order all later work behind that work. If no idle
// block fits an allocation, one is composed at fresh addresses, of spares and chunks of idle
// blocks; only the missing chunks are leased. Before the lease grows beyond the program's peak use,
// idle chunks are given back.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "mempool/arena.h"
#include "mempool/blocks.h"
#include "mempool/device.h"
#include "mempool/free_ranges.h"
#include "mempool/resting_frees.h"
#include "mempool/spare_chunks.h"

namespace longwire::mempool {

inline constexpr uint64_t kAlignment = 512;         // of every allocation, as natively
inline constexpr uint64_t kBlockBytes = 64 * kMiB;  // from here on an allocation is a block

class Pool {
 public:
  // `window`: the addresses that it may use. `granularity`: of chunks.
  Pool(Device& device, const Range& window, uint64_t granularity);

  // Adds a leased chunk to the arena and returns its address. The caller maps it.
  bool AddLeased(const Chunk& chunk, uint64_t* address);

  // Allocates. Returns a CUDA code, or one of the two below: the owner then waits, without its
  // lock, and calls again. With `stream`, the memory is used in that stream first, so memory that
  // rests only for that stream may be taken at once.
  static constexpr int kWaitForWork = -1;    // until OldestMarks have passed
  static constexpr int kWaitForDevice = -2;  // until Device::Pending is false
  int Place(uint64_t bytes, void* stream, uint64_t* address);
  // `bytes` as they were allocated. Without marks the memory may be used again at once.
  void Free(uint64_t address, uint64_t bytes, std::vector<Mark> marks, Freed freed);
  std::vector<Mark> OldestMarks() const { return resting_.OldestMarks(); }

  // Instead of a copy, maps the memory of the block at `from`, with its contents, at the start of
  // the block at `to`; `from` is freed. False if the chunks' sizes or the device do not allow it.
  bool Move(uint64_t from, uint64_t to);
  // *moved: total bytes of the source's chunks.
  bool CanMove(uint64_t from, uint64_t to, uint64_t* moved);

  // Takes addresses for other uses; results as of Place. A hint is followed if it is free.
  int TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address);
  void GiveAddresses(uint64_t address, uint64_t bytes) { window_.Add(address, bytes); }
  // Leases chunks for other uses; results as of Place. The caller returns them to the device.
  int LeaseOutside(uint64_t bytes, std::vector<Chunk>* chunks);

  // Gives back idle chunks of at least `bytes` in all, if there are as many, and returns their
  // size. With `keep_one`, a chunk of the arena stays for the next allocation.
  uint64_t GiveBack(uint64_t bytes, bool keep_one = true);

  // The mapped chunks in which the range lies, and where the first of them starts.
  bool ChunksUnder(const Range& range, std::vector<Chunk>* chunks, uint64_t* start) const;
  // The mapped ranges; adjacent ones are merged.
  std::vector<Range> Mapped() const;

  uint64_t leased() const { return leased_; }
  uint64_t resting() const { return resting_.bytes(); }
  // Free for allocations, mapped or not.
  uint64_t idle() const { return spares_.bytes() + blocks_.idle_bytes() + arena_.free_bytes(); }
  // The part of idle() that GiveBack can give, which is whole chunks.
  uint64_t idle_chunks();
  void Collect();

 private:
  // Which idle chunks a request may take.
  enum class Idle { kKeepOneOfArena, kAll };

  uint64_t RoundUp(uint64_t bytes) const;
  void FreeNow(const Range& range);
  bool TakeFree(uint64_t bytes, uint64_t* address);
  bool AddIdleBlock();                     // to the arena
  bool TakeArenaChunk(uint64_t* address);  // as a block in use
  bool WouldFitRested(uint64_t bytes) const;
  int PlaceBlock(uint64_t bytes, uint64_t* address);
  int GrowArena(uint64_t bytes);
  int MapChunks(const std::vector<Chunk>& chunks, bool low, uint64_t* address);
  int TakeWindow(uint64_t bytes, bool low, uint64_t* address);
  void TakeUnmapped();
  // Takes idle chunks, from all tables, and leases the rest, `bytes` in all. On failure nothing is
  // lost.
  int Compose(uint64_t bytes, Idle idle, std::vector<Chunk>* chunks);
  uint64_t Gather(uint64_t bytes, Idle idle, std::vector<Chunk>* chunks);
  // Sizes of blocks in use that could later be moved into a block of `bytes`, ascending.
  std::vector<uint64_t> SeamsOf(uint64_t bytes) const;
  // These chunks and new ones (id 0) of `missing` bytes, in an order in which chunks end at the
  // seams where possible.
  std::vector<Chunk> Arrange(std::vector<Chunk> chunks, uint64_t missing) const;
  struct Exchange {
    uint64_t unmap = 0;       // bytes from the start of the target
    std::vector<Chunk> map;   // mapped there instead
    std::vector<Chunk> kept;  // chunks of the target that stay, behind these
    SpareChunks spares;       // the spares after the move
  };
  bool PlanMove(uint64_t from, uint64_t to, Exchange* exchange);
  // These unmap idle memory: its chunks become spares.
  void Dissolve(uint64_t address);
  void Evict(const Arena::Place& place);
  bool UnmapSomeIdle(uint64_t bytes, Idle idle);
  int Lease(const std::vector<uint64_t>& sizes, std::vector<Chunk>* chunks);
  void StayWithinPeak(uint64_t more);
  uint64_t ReturnIdle(uint64_t bytes, Idle idle);

  Device& device_;
  const uint64_t granularity_;
  const uint64_t reservations_from_;  // below it, the arena grows
  FreeRanges window_;                 // addresses that nothing is mapped at
  Arena arena_;
  Blocks blocks_;
  SpareChunks spares_;
  RestingFrees resting_;
  uint64_t leased_ = 0;
  uint64_t peak_ = 0;  // the most that was leased and not idle
};

}  // namespace longwire::mempool
