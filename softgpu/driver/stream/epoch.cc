#include "softgpu/driver/stream/epoch.h"

#include <vector>

#include "softgpu/engine/mutex.h"
#include "softgpu/engine/texture/texture.h"

namespace softgpu {
namespace {

struct Current {
  // No epoch is destroyed while it is held.
  base::Mutex mutex{base::ranks::kSoftgpuEpoch};
  std::weak_ptr<Epoch> epoch LONGWIRE_GUARDED_BY(mutex);  // there while any is
};

Current& TheCurrent() {
  static auto* current = new Current;  // streams' threads may outlive main
  return *current;
}

}  // namespace

struct Epoch {
  // Not added to once there is a next epoch.
  std::vector<uint64_t> retired LONGWIRE_GUARDED_BY(TheCurrent().mutex);
  // Destroyed after this one.
  std::shared_ptr<Epoch> next LONGWIRE_GUARDED_BY(TheCurrent().mutex);

  ~Epoch() {
    for (uint64_t object : retired) texture_objects::Remove(object);
    // One by one: a destructor that went into the next one would go as deep as there are epochs.
    for (std::shared_ptr<Epoch> rest = std::move(next); rest != nullptr;) {
      std::shared_ptr<Epoch> after;
      {
        base::MutexLock lock(TheCurrent().mutex);
        if (rest.use_count() > 1) return;
        after = std::move(rest->next);
      }
      rest = std::move(after);
    }
  }
};

std::shared_ptr<Epoch> CurrentEpoch() {
  std::shared_ptr<Epoch> before;  // released after the lock
  base::MutexLock lock(TheCurrent().mutex);
  before = TheCurrent().epoch.lock();
  if (before != nullptr && before->retired.empty()) return before;
  auto epoch = std::make_shared<Epoch>();
  TheCurrent().epoch = epoch;
  if (before != nullptr) before->next = epoch;
  return epoch;
}

void RetireTextureObject(uint64_t object) {
  std::shared_ptr<Epoch> epoch;  // released after the lock
  {
    base::MutexLock lock(TheCurrent().mutex);
    epoch = TheCurrent().epoch.lock();
    if (epoch != nullptr) epoch->retired.push_back(object);
  }
  if (epoch == nullptr) texture_objects::Remove(object);
}

}  // namespace softgpu
