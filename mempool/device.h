// What the pool asks of the device whose memory it manages. In the client these are calls that are
// queued for the worker; in tests a fake that counts them and fails the n-th.
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

// A place in a stream: passed when the work up to there is finished.
struct Mark {
  void* stream = nullptr;
  uint64_t position = 0;
};

// Who is told by a free that the work before it is over: only the stream in which it is, or the
// program, which natively waits for all of it.
enum class Freed { kInStream, kForAll };

// Results are CUDA's codes; these two the pool gives and looks at itself.
inline constexpr int kDone = 0;
inline constexpr int kNoMemory = 2;

class Device {
 public:
  virtual ~Device() = default;

  // All of the chunks or none, each perhaps as several smaller ones, in this order. May wait.
  // kNoMemory: there is not so much.
  virtual int Lease(const std::vector<uint64_t>& bytes, std::vector<Chunk>* chunks) = 0;
  // Queued, behind the unmappings that were queued before.
  virtual void Return(const std::vector<Chunk>& chunks) = 0;

  // Queued: the chunks one after the other. A code: it could not even be queued.
  virtual int Map(uint64_t address, const std::vector<Chunk>& chunks) = 0;
  // Queued: takes place when the work before it is finished. Chunks may be mapped elsewhere
  // meanwhile; the addresses must not be used before TakeUnmapped says so.
  virtual void Unmap(const Range& range) = 0;
  virtual std::vector<Range> TakeUnmapped() = 0;
  // Queued: the first `moved` bytes of the chunks, which are in use elsewhere, and behind them the
  // others are mapped from the address on; what was mapped at the first `unmap` bytes there goes.
  // Nobody's unfinished work may use these. A code: it was not queued, and nothing is changed.
  virtual int Remap(const Range& unmap, const std::vector<Chunk>& chunks, uint64_t moved) = 0;
  // Whether some return or unmapping is still on its way.
  virtual bool Pending() = 0;

  virtual bool Passed(const Mark& mark) = 0;
  // From now on all work that is handed to any stream comes behind the mark. False: it may not.
  virtual bool PutAllBehind(const Mark& mark) = 0;
  // The pool is done with the mark.
  virtual void Drop(const Mark& mark) = 0;
};

}  // namespace longwire::mempool
