// A pool on a fake device, with every rule of allocation checked at every step: what a program has
// lies in mapped memory, no byte of it is anybody else's, and nothing is given out again before the
// work that may still use it is finished.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mempool/pool.h"
#include "mempool/testing/fake_device.h"

namespace longwire::mempool::testing {

inline constexpr uint64_t kWindowBase = uint64_t{1} << 44;

class WatchedPool {
 public:
  explicit WatchedPool(uint64_t device_bytes, uint64_t window_bytes = 0, size_t streams = 3);

  // The code of the pool, after all waits. On success the allocation's address.
  int Allocate(uint64_t bytes, uint64_t* address, FakeStream* stream = nullptr);
  // Work of these streams, one bit for each, may still use it.
  void Free(uint64_t address, unsigned busy = 0);
  // A move in place of a copy, when all work is finished. False if the pool would not.
  bool Move(uint64_t from, uint64_t to);
  // Hands some work to a stream, or finishes some of it.
  void Work(size_t stream) { ++streams[stream].last; }
  void Progress(size_t stream, uint64_t count);
  void FinishAll();

  // Sum of what the program has, as it asked for it.
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t live_peak() const { return live_peak_; }
  const std::map<uint64_t, uint64_t>& live() const { return live_; }  // bytes by address
  // The first thing that went wrong; empty if all is well.
  std::string fault() const { return fault_.empty() ? device.fault() : fault_; }

  FakeDevice device;
  Pool pool;
  std::vector<FakeStream> streams;

 private:
  using Place = std::pair<uint64_t, uint64_t>;  // chunk, offset
  struct Owner {
    uint64_t bytes = 0;
    std::vector<Mark> marks;  // of a freed one: nobody else's until they are passed
    bool freed = false;
  };
  struct Piece {
    Place place;
    uint64_t bytes = 0;
  };
  std::optional<std::vector<Piece>> PiecesOf(uint64_t address, uint64_t bytes);
  void TakePieces(uint64_t address, uint64_t bytes, const FakeStream* stream);
  bool MayTake(const Owner& owner, const FakeStream* stream);
  void Fault(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }

  std::map<uint64_t, uint64_t> live_;
  std::map<uint64_t, const FakeStream*> home_;  // of those allocated in a stream, by address
  std::map<Place, Owner> owners_;               // of every byte that is or was in use
  uint64_t live_bytes_ = 0, live_peak_ = 0;
  std::string fault_;
};

}  // namespace longwire::mempool::testing
