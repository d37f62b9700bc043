// The memory of one device as one program uses it: it places allocations at addresses of its own
// choice in physical chunks that are leased to it, and asks the device (device.h) for nothing but
// leases, mappings and their ends. No locks, threads, sessions or CUDA in here: the owner calls it
// under a lock of its own.
//
// Where leased memory is, one of:
//   arena    mapped; allocations below 64 MiB share it (arena.h), small ones in slabs (slabs.h)
//   blocks   mapped; from 64 MiB on an allocation has chunks of its own (blocks.h), which are kept
//            together when it is freed: the next allocation of this size takes it as it is; one of
//            64 MiB and a free chunk of the arena stand in for each other
//   spares   mapped nowhere (spare_chunks.h)
// What is freed rests until the work before the free is finished (resting_frees.h), unless it is
// wanted again at once and the device can put all that follows behind that work. A block that fits
// no idle one is composed: of spares and of chunks of idle blocks, at fresh addresses, and only
// what is missing is leased. Before the lease grows beyond the most that the program ever used at
// once, idle chunks are given back.
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

  // A chunk that is leased already; it becomes part of the arena. Where: it is not mapped by this.
  bool AddLeased(const Chunk& chunk, uint64_t* address);

  // A code, or what to wait for before it is called again; the owner holds no lock meanwhile. With
  // `stream` it is to be used there first: memory that rests only for that stream is used again at
  // once.
  static constexpr int kWaitForWork = -1;    // until OldestMarks have passed
  static constexpr int kWaitForDevice = -2;  // until what is Pending is done
  int Place(uint64_t bytes, void* stream, uint64_t* address);
  // As many bytes as were placed there. Without marks the memory may be used again at once.
  void Free(uint64_t address, uint64_t bytes, std::vector<Mark> marks, Freed freed);
  std::vector<Mark> OldestMarks() const { return resting_.OldestMarks(); }

  // Puts the memory of the block at `from` where the block at `to` starts, bytes and all, in place
  // of a copy; `from` is freed. False if their chunks do not allow it, or the device does not.
  bool Move(uint64_t from, uint64_t to);
  // *moved: the bytes of all the source's chunks.
  bool CanMove(uint64_t from, uint64_t to, uint64_t* moved);

  // Addresses for other uses, and the same codes. A hint is followed if it is free.
  int TakeAddresses(uint64_t bytes, uint64_t hint, uint64_t* address);
  void GiveAddresses(uint64_t address, uint64_t bytes) { window_.Add(address, bytes); }
  // Chunks for other uses, and the same codes; whoever has them returns them to the device.
  int LeaseOutside(uint64_t bytes, std::vector<Chunk>* chunks);

  // Gives idle chunks back until so many bytes are on their way, and says how many are. With
  // `keep_one`, a chunk of the arena stays for the next allocation.
  uint64_t GiveBack(uint64_t bytes, bool keep_one = true);

  // The mapped chunks in which the range lies, and where the first of them starts.
  bool ChunksUnder(const Range& range, std::vector<Chunk>* chunks, uint64_t* start) const;
  // All that is mapped; ranges that touch are one.
  std::vector<Range> Mapped() const;

  uint64_t leased() const { return leased_; }
  uint64_t resting() const { return resting_.bytes(); }
  // Free for allocations, mapped or not.
  uint64_t idle() const { return spares_.bytes() + blocks_.idle_bytes() + arena_.free_bytes(); }
  // Of this, what is whole chunks: GiveBack can give so much.
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
  // Chunks of together so many bytes, out of all tables. On failure nothing is lost.
  int Compose(uint64_t bytes, Idle idle, std::vector<Chunk>* chunks);
  uint64_t Gather(uint64_t bytes, Idle idle, std::vector<Chunk>* chunks);
  // Sizes of blocks in use that one of so many bytes could be the growth of, ascending.
  std::vector<uint64_t> SeamsOf(uint64_t bytes) const;
  // These chunks and others (number 0) of `missing` bytes, so that where it can be chunks end at
  // the seams.
  std::vector<Chunk> Arrange(std::vector<Chunk> chunks, uint64_t missing) const;
  struct Exchange {
    uint64_t unmap = 0;       // bytes from the start of the target
    std::vector<Chunk> map;   // there instead
    std::vector<Chunk> kept;  // of the target, behind these
    SpareChunks spares;       // that there are afterwards
  };
  bool PlanMove(uint64_t from, uint64_t to, Exchange* exchange);
  // Unmap what is idle: the chunks become spares.
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
