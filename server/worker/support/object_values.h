// Texture and surface objects: kernels read the driver's own values, so the client has those and no
// ids. Only values of the session reach the driver again.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::worker {

class ObjectValues {
 public:
  static constexpr size_t kMaxObjects = size_t{1} << 20;
  enum class Kind { kTexture, kSurface };

  // False if there are too many.
  bool Add(uint64_t value, Kind kind, uint32_t context) {
    base::MutexLock lock(mutex_);
    if (objects_.size() >= kMaxObjects) return false;
    objects_[value] = {kind, context};
    return true;
  }
  // False if there is no such object.
  bool Take(uint64_t value, Kind kind) {
    base::MutexLock lock(mutex_);
    auto found = objects_.find(value);
    if (found == objects_.end() || found->second.kind != kind) return false;
    objects_.erase(found);
    return true;
  }
  // They have gone with their context.
  void ForgetContext(uint32_t context) {
    base::MutexLock lock(mutex_);
    std::erase_if(objects_, [&](const auto& entry) { return entry.second.context == context; });
  }

 private:
  struct Object {
    Kind kind = Kind::kTexture;
    uint32_t context = 0;
  };
  base::Mutex mutex_{base::ranks::kObjectValues};
  std::unordered_map<uint64_t, Object> objects_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::worker
