// What graphs allocate is charged when a node that allocates is added, and what was captured when
// the graph is instantiated: launches, with which the driver takes the memory, do not ask. A graph
// and its executable have the charge together. After their end the driver keeps what the graph has
// not freed, until something else frees it.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/memory/charges.h"

namespace longwire::worker {

class GraphCharges {
 public:
  struct Bytes {
    uint64_t all = 0;
    uint64_t unfreed = 0;  // by the graph itself
  };
  struct OnDevice {
    int32_t device = 0;  // the client's number
    Charge charge;
    uint64_t unfreed = 0;
  };
  using Taken = std::vector<OnDevice>;
  using Shared = std::shared_ptr<Taken>;

  GraphCharges(const DriverTable& driver, std::vector<Device>& devices, Charges& charges)
      : driver_(driver), devices_(devices), charges_(charges) {}
  GraphCharges(const GraphCharges&) = delete;
  GraphCharges& operator=(const GraphCharges&) = delete;

  // For a node that is added to the graph. Waits for the keeper. Until the graph and its executable
  // are gone.
  CUresult AddNode(CUgraph graph, int32_t device, uint64_t bytes);
  // The driver has refused the node.
  void RemoveNode(CUgraph graph, int32_t device, uint64_t bytes);
  // The graph is about to be destroyed: its charge, to be let go afterwards. Another graph may get
  // the handle.
  Shared Remove(CUgraph graph);
  // For a new executable of the graph, whose launches allocate these bytes: what the graph has not
  // been charged for. Waits for the keeper.
  CUresult Take(CUgraph graph, const std::map<CUdevice, Bytes>& bytes, Shared* shared,
                Taken* taken);
  // The executable was not made.
  void Cancel(Taken taken);
  // The executable was destroyed. The driver may still have its memory.
  void Left(Taken taken);
  // Gives back what the driver has freed of that.
  void Settle();
  bool any_left() {
    base::MutexLock lock(mutex_);
    for (const auto& [device, account] : accounts_) {
      if (account.unfreed.bytes() + account.rest.bytes() != 0) return true;
    }
    return false;
  }

 private:
  struct Account {
    uint64_t alive = 0;  // bytes of all executables
    // Of destroyed ones: what their graphs have not freed, and the rest, where the driver has more
    // than the others can have.
    Charge unfreed, rest;
  };

  // Waits for the keeper; once more after Settle.
  CUresult TakeOrSettle(int32_t device, uint64_t bytes, Charge* charge);
  Shared Of(CUgraph graph, bool makes);

  const DriverTable& driver_;
  std::vector<Device>& devices_;
  Charges& charges_;
  base::Mutex mutex_{base::ranks::kGraphCharges};
  std::map<int32_t, Account> accounts_ LONGWIRE_GUARDED_BY(mutex_);
  struct OfGraph {
    Shared shared;
    std::map<int32_t, uint64_t> bytes;  // of its nodes, by device
  };
  std::map<CUgraph, OfGraph> graphs_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
