#include "softgpu/driver/graph/user_object.h"

#include <thread>

namespace softgpu {

void UserObject::Release(uint64_t count) {
  if (references.fetch_sub(count) != count) return;
  Driver::Get().user_objects.Remove(this);
  // The program's code runs under no lock of ours, and may not call the driver.
  std::thread([pointer = pointer, destroy = destroy] {
    InHostFunction() = true;
    destroy(pointer);
  }).detach();
}

UserReferences& UserReferences::operator=(const UserReferences& other) {
  for (auto& [object, count] : other.counts_) {
    object->Retain(count);
    counts_[object] += count;
  }
  return *this;
}

UserReferences::~UserReferences() {
  for (auto& [object, count] : counts_) object->Release(count);
}

bool UserReferences::Remove(const std::shared_ptr<UserObject>& object, uint64_t count) {
  auto found = counts_.find(object);
  if (found == counts_.end() || found->second < count) return false;
  found->second -= count;
  if (found->second == 0) counts_.erase(found);
  object->Release(count);
  return true;
}

}  // namespace softgpu
