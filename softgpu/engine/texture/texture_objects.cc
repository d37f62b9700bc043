#include <unordered_map>

#include "softgpu/engine/mutex.h"
#include "softgpu/engine/texture/texture.h"

namespace softgpu {
namespace {

struct Objects {
  base::Mutex mutex{base::ranks::kSoftgpuTextureObjects};
  std::unordered_map<uint64_t, std::shared_ptr<const TextureView>> views LONGWIRE_GUARDED_BY(mutex);
  uint64_t next LONGWIRE_GUARDED_BY(mutex) = 1;
};

Objects& TheObjects() {
  static auto* objects = new Objects;
  return *objects;
}

}  // namespace

namespace texture_objects {

uint64_t Add(std::shared_ptr<const TextureView> view) {
  Objects& objects = TheObjects();
  base::MutexLock lock(objects.mutex);
  objects.views[objects.next] = std::move(view);
  return objects.next++;
}

bool Remove(uint64_t object) {
  Objects& objects = TheObjects();
  base::MutexLock lock(objects.mutex);
  return objects.views.erase(object) != 0;
}

std::shared_ptr<const TextureView> Find(uint64_t object) {
  Objects& objects = TheObjects();
  base::MutexLock lock(objects.mutex);
  auto found = objects.views.find(object);
  return found == objects.views.end() ? nullptr : found->second;
}

}  // namespace texture_objects

}  // namespace softgpu
