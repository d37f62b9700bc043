// The operations that the pool needs from the device whose memory it manages. In the client they
// are calls that are queued for the worker; in tests a fake counts them and fails the n-th.
#pragma once

#include <cstdint>
#include <vector>

namespace longwire::mempool {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// Physical memory that is leased and mapped as a whole.
struct Chunk {
  uint64_t id = 0;
  uint64_t bytes = 0;
};

struct Range {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// A position in a stream. It is passed when the work up to it is finished.
struct Mark {
  void* stream = nullptr;
  uint64_t position = 0;
};

// After a free returns, may the program assume that earlier work is finished? kInStream: no, the
// free is ordered in its stream only. kForAll: yes, since natively the free waits for all work.
enum class Freed { kInStream, kForAll };

// Results are CUDA's codes. The pool itself returns and checks these two.
inline constexpr int kDone = 0;
inline constexpr int kNoMemory = 2;

class Device {
 public:
  virtual ~Device() = default;

  // Leases all of the chunks or none. Each may come as several smaller ones, in this order. May
  // wait. kNoMemory: there is too little memory.
  virtual int Lease(const std::vector<uint64_t>& bytes, std::vector<Chunk>* chunks) = 0;
  // Queued behind the earlier Unmap calls.
  virtual void Return(const std::vector<Chunk>& chunks) = 0;

  // Queued: maps the chunks one behind the other. An error if it could not be queued.
  virtual int Map(uint64_t address, const std::vector<Chunk>& chunks) = 0;
  // Queued: takes effect when the earlier work is finished. Chunks may be mapped elsewhere
  // meanwhile; the addresses must not be used before TakeUnmapped has returned them.
  virtual void Unmap(const Range& range) = 0;
  virtual std::vector<Range> TakeUnmapped() = 0;
  // Queued: unmaps `unmap` and maps the chunks from its address on. The first `moved` bytes of the
  // chunks are mapped elsewhere, too. No unfinished work may use the unmapped range. After an error
  // nothing was queued or changed.
  virtual int Remap(const Range& unmap, const std::vector<Chunk>& chunks, uint64_t moved) = 0;
  // True if a Return or Unmap is not done yet.
  virtual bool Pending() = 0;

  virtual bool Passed(const Mark& mark) = 0;
  // Orders all work that is submitted to any stream from now on behind the mark. False if that is
  // not allowed.
  virtual bool PutAllBehind(const Mark& mark) = 0;
  // The pool is done with the mark.
  virtual void Drop(const Mark& mark) = 0;
};

}  // namespace longwire::mempool
