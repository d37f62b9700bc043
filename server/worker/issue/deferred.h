// Deferred calls: destroys, unmaps and unloads wait until the calls before them in the log were
// issued (and, where the driver would wait, finished), and then run on a helper. Maps of a range
// whose unmap is deferred wait here too; maps of new chunks run on a helper. So do loads of modules
// where running kernels may wait for mirrored memory (deferred_loads.cc). Only the log thread calls
// this class, except for Done.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/issue/executor.h"
#include "server/worker/issue/waiting_calls.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"
#include "wire/record.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class Graphs;
class Helpers;
class Issuer;
class Memory;
class Mirrors;
class Timelines;

class Deferred {
 public:
  struct Uses {
    Executor executor;
    Issuer& issuer;
    const HandleTable<Stream>& streams;
    Timelines& timelines;
    Graphs& graphs;
    Memory& memory;
    const Mirrors& mirrors;
    Helpers& helpers;
    WaitingCalls& waiting;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit Deferred(Uses uses) : uses_(uses) {}

  // True if the call is deferred; it is then moved out of `call`.
  bool Take(QueuedCall& call);
  // True if the call must stay in the log until the map that runs on a helper is done. Calls
  // outside streams would otherwise use that memory too early.
  bool MustWait(const wire::RecordHeader& header) const;
  // Runs what can run now. True if anything did.
  bool Pass();
  bool anything_waits() const { return !held_.empty() || !maps_.empty() || !loads_.empty(); }

 private:
  struct Held {
    WaitingCall call;
    CallHold until = CallHold::kIssued;
    uint64_t stream = 0;
  };
  struct Range {
    uint64_t position = 0;
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  void Hold(QueuedCall& call, CallHold until, uint64_t stream = 0);
  // False if the arguments cannot be decoded.
  bool TakeUnmap(QueuedCall& call);
  bool TakeStreamDestroy(QueuedCall& call);
  bool Ready(const Held& held, uint64_t lowest_waiting);
  // True if an earlier deferred call belongs to the same context.
  bool PartsAreHeld(size_t index) const;
  void Release(WaitingCall call);
  void Done(uint64_t position);

  // deferred_loads.cc
  bool TakeLoad(QueuedCall& call);
  void PlaceWorkBarrier();
  void LoadDone(uint64_t position);
  // True if the helper is done with one.
  bool ForgetLoads();

  // deferred_maps.cc
  bool TakeMap(QueuedCall& call);
  // Runs maps, in order, until one has to wait. True if any ran.
  bool PassMaps();
  void MapOnHelper();
  // The range and chunks of a map; empty for other calls.
  struct Place {
    uint64_t position = 0;
    uint64_t address = 0;
    std::vector<uint64_t> chunks;
  };
  static Place PlaceOf(const QueuedCall& call);
  bool IsStillMapped(const Place& place);

  Uses uses_;
  std::deque<Held> held_;
  std::deque<WaitingCall> maps_;     // maps that wait, and the calls behind them
  bool mapping_ = false;             // a helper runs the first of maps_
  std::atomic<bool> mapped_{false};  // the helper is done with it
  base::Mutex mutex_{base::ranks::kDeferred};
  std::vector<Range> unmaps_ LONGWIRE_GUARDED_BY(mutex_);  // deferred or running
  std::vector<uint64_t> loads_;                            // positions, of the same
  std::vector<uint64_t> loaded_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
