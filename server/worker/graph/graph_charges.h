// What graphs allocate is charged with the executable: the driver has the memory from its first
// launch on, and keeps it after the executable's end as long as something of it is alive.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/memory/charges.h"

namespace longwire::worker {

class GraphCharges {
 public:
  // By the client's number of the device.
  using Taken = std::vector<std::pair<int32_t, Charge>>;

  GraphCharges(const DriverTable& driver, std::vector<Device>& devices, Charges& charges)
      : driver_(driver), devices_(devices), charges_(charges) {}

  // For a new executable, whose launches allocate these bytes. Waits for the keeper.
  CUresult Take(const std::map<CUdevice, uint64_t>& bytes, Taken* taken);
  // The executable was destroyed. The driver may still have its memory.
  void Left(Taken taken);
  // Gives back what the driver has freed of that.
  void Settle();
  bool any_left() {
    base::MutexLock lock(mutex_);
    return !left_.empty();
  }

 private:
  const DriverTable& driver_;
  std::vector<Device>& devices_;
  Charges& charges_;
  base::Mutex mutex_{base::ranks::kGraphCharges};
  std::map<int32_t, Charge> left_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
