// Launches that a stream has had before, in this order and of these shapes, go to the device as
// one: a graph of kernel nodes, which NVIDIA's driver launches in half of the time that it takes
// for one kernel (docs/decisions/0035). What differs from the last time are the parameters; they
// are exchanged in the nodes. A node keeps its function and its sizes for life: what else belongs
// to a function (its clusters, for one) does not leave a node when another function comes.
//
// Pieces of 4, 8 or 16 launches are looked for, at places in the row of launches that are multiples
// of their size: so the same program is cut in the same places, whenever its messages arrive. A row
// begins behind any other call of the stream.
//
// The log thread launches; any thread may have chains forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {

struct LaunchShape {
  CUfunction function = nullptr;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t shared_bytes = 0;
  uint32_t parameter_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

struct alignas(64) PlainLaunch {
  LaunchShape shape;
  std::byte* parameters = nullptr;
  uint64_t position = 0;
};

class LaunchChains {
 public:
  explicit LaunchChains(const DriverTable& driver);
  ~LaunchChains() { ForgetAll(); }

  // Held around calls of Launch: no chain is forgotten meanwhile.
  base::Mutex& mutex() LONGWIRE_RETURN_CAPABILITY(mutex_) { return mutex_; }
  // How many of the launches went as one chain, from the first on. `*alone`: how many are to go one
  // by one before it is worth to ask again; 0 if a chain went. `place`: of the first in its row.
  size_t Launch(const Stream& stream, uint64_t place, std::span<const PlainLaunch> launches,
                size_t* alone) LONGWIRE_REQUIRES(mutex_);

  // Before what they were made with goes away or changes.
  void ForgetAll();
  void Forget(const Stream& stream);

  // Held around every call: while it changes how kernels run that are launched later nothing is
  // made, since it could be from before the change or after it.
  class Change {
   public:
    Change(LaunchChains& chains, CallId call);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    LaunchChains* chains_ = nullptr;
  };

 private:
  static constexpr size_t kSizes[] = {16, 8, 4};

  // A graph of one launch behind the other, and what its nodes hold now.
  struct Chain {
    explicit Chain(const DriverTable& its_driver) : driver(its_driver) {}
    ~Chain();
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;
    CUresult Make(std::span<const PlainLaunch> launches);
    bool Fits(std::span<const PlainLaunch> launches) const;
    CUresult Launch(CUstream stream, std::span<const PlainLaunch> launches);

    const DriverTable& driver;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    std::vector<CUgraphNode> nodes;
    std::vector<LaunchShape> shapes;
    std::vector<std::vector<std::byte>> parameters;
    uint64_t used = 0;  // when, by clock_
  };
  // Launches of one stream that have come before, by their number and shapes.
  struct Piece {
    uint64_t stream = 0;
    uint32_t times = 0;
    bool never = false;  // the driver refused it
    std::unique_ptr<Chain> chain;
  };

  bool Takes(const Stream& stream) const LONGWIRE_REQUIRES(mutex_);
  // Counts that they came, and makes their chain if it is due.
  void Meet(uint64_t hash, const Stream& stream, std::span<const PlainLaunch> launches)
      LONGWIRE_REQUIRES(mutex_);
  bool MakeRoom() LONGWIRE_REQUIRES(mutex_);
  void Drop(Piece& piece) LONGWIRE_REQUIRES(mutex_);  // its chain
  template <class Goes>
  void ForgetWhere(Goes goes);

  const DriverTable& driver_;
  base::Mutex mutex_{base::ranks::kLaunchChains};
  bool stopped_ LONGWIRE_GUARDED_BY(mutex_) = false;
  int changes_ LONGWIRE_GUARDED_BY(mutex_) = 0;     // under way
  uint64_t clock_ LONGWIRE_GUARDED_BY(mutex_) = 0;  // pieces that were looked up
  size_t chains_ LONGWIRE_GUARDED_BY(mutex_) = 0;
  // By a hash of stream, size and shapes.
  std::unordered_map<uint64_t, Piece> pieces_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
