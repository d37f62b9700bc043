// A sequence of launches that a stream repeats, with the same functions and sizes, goes to the
// device as one graph of kernel nodes. NVIDIA's driver needs half as long for the graph as for one
// kernel launch (docs/decisions/0035). Only the parameters differ from the last time; they are set
// in the nodes. A node's function and sizes never change: other properties of its function, such
// as cluster dimensions, would stay in the node.
//
// A stream's launches between two other calls are a row. Chains have 4, 8 or 16 launches and begin
// at an index of the row that is a multiple of their size: a program is cut at the same indexes,
// no matter when its messages arrive.
//
// The log thread launches chains; any thread may call Forget.
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

  // Held around calls of Launch, so that no chain is destroyed meanwhile.
  base::Mutex& mutex() LONGWIRE_RETURN_CAPABILITY(mutex_) { return mutex_; }
  // Issues the first launches as one chain, if there is one. Returns their number. `place` is the
  // index of the first launch in its row. `*alone` is the number of launches to issue one by one
  // before the next call; 0 if a chain was issued.
  size_t Launch(const Stream& stream, uint64_t place, std::span<const PlainLaunch> launches,
                size_t* alone) LONGWIRE_REQUIRES(mutex_);

  // Destroy chains, before objects or settings that they were made with change or are destroyed.
  void ForgetAll();
  void Forget(const Stream& stream);

  // Exists during every call. If the call changes how later kernels run, no chain is made
  // meanwhile, since it could have the state before or after the change.
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

  // A graph of launches in sequence, and what its nodes are set to now.
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
  // A sequence of launches that one stream has had, identified by their number and shapes.
  struct Piece {
    uint64_t stream = 0;
    uint32_t times = 0;
    bool never = false;  // the driver refused it
    std::unique_ptr<Chain> chain;
  };

  bool Takes(const Stream& stream) const LONGWIRE_REQUIRES(mutex_);
  // Counts that these launches came, and makes their chain if it is due.
  void Meet(uint64_t hash, const Stream& stream, std::span<const PlainLaunch> launches)
      LONGWIRE_REQUIRES(mutex_);
  bool MakeRoom() LONGWIRE_REQUIRES(mutex_);
  void Drop(Piece& piece) LONGWIRE_REQUIRES(mutex_);  // destroys its chain
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
