// Loads of modules beside kernels that run. NVIDIA's driver waits for these while it loads, and
// nobody else gets into the context meanwhile (bench/results/h200/waits-in-driver.txt). A kernel
// may wait for memory that is mirrored, which is exchanged through the driver: it would never end.
// So such a load waits here until what was queued before it has finished, and what was queued after
// it waits for the load, as it would for the driver.
#include <algorithm>

#include "server/worker/issue/deferred.h"
#include "server/worker/issue/issuer.h"
#include "server/worker/memory/mirrors.h"
#include "wire/guards.h"

namespace longwire::worker {

bool Deferred::TakeLoad(QueuedCall& call) {
  static const bool never = wire::GuardIsOff("loads_wait");
  if (never || !uses_.mirrors.Any()) return false;
  loads_.push_back(call.position);
  PlaceWorkBarrier();
  Hold(call, CallHold::kFinished);
  return true;
}

void Deferred::PlaceWorkBarrier() {
  const auto first = std::ranges::min_element(loads_);
  uses_.issuer.SetWorkBarrier(first == loads_.end() ? UINT64_MAX : *first);
}

void Deferred::LoadDone(uint64_t position) {
  {
    base::MutexLock lock(mutex_);
    loaded_.push_back(position);
  }
  uses_.up.PokeConsumer();
}

bool Deferred::ForgetLoads() {
  std::vector<uint64_t> loaded;
  {
    base::MutexLock lock(mutex_);
    loaded.swap(loaded_);
  }
  if (loaded.empty()) return false;
  std::erase_if(loads_,
                [&](uint64_t position) { return std::ranges::count(loaded, position) != 0; });
  PlaceWorkBarrier();
  return true;
}

}  // namespace longwire::worker
