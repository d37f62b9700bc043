// Memory of the driver's pools that is allocated in the order of streams. It is charged before the
// driver is asked, in the steps in which the driver takes memory for a pool, and given back when
// the stream has reached the free and the pool was trimmed.
//
// The log thread issues these calls and may not wait for the keeper: a helper does, and the call is
// issued after that.
#pragma once

#include <map>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/worker/memory/charges.h"
#include "server/worker/support/driver.h"
#include "server/worker/support/objects.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class CurrentContext;
class Helpers;

class StreamAllocations {
 public:
  struct Uses {
    const DriverTable& driver;
    std::vector<Device>& devices;
    Charges& charges;
    CurrentContext& current_context;
    Helpers& helpers;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit StreamAllocations(Uses uses) : uses_(uses) {}

  // For the call at `position` of the log. kNotYet while the keeper is asked.
  CUresult Allocate(const Stream& stream, uint64_t position, uint64_t bytes, CUdeviceptr* address);
  // The driver frees the address. Returns the bytes that Freed takes when the stream has
  // reached that; 0 if the address is not of a pool.
  uint64_t Free(int32_t device, CUdeviceptr address);
  void Freed(int32_t device, uint64_t bytes);

 private:
  enum class Ask { kNone, kRuns, kRefused };
  struct Pool {
    Charge charge;
    uint64_t used = 0;  // bytes, also of what is freed and not reached
    std::map<CUdeviceptr, uint64_t> alive;
    Ask ask = Ask::kNone;
    uint64_t asked_by = 0;  // position of the call
  };
  void AskKeeper(int32_t device, uint64_t bytes);
  void Settle(int32_t device, uint64_t freed);

  Uses uses_;
  base::Mutex mutex_{base::ranks::kStreamAllocations};
  std::map<int32_t, Pool> pools_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
