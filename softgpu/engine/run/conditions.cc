#include "softgpu/engine/run/conditions.h"

#include <unordered_map>

#include "softgpu/engine/mutex.h"

namespace softgpu {
namespace {

struct Conditions {
  base::Mutex mutex{base::ranks::kSoftgpuConditions};
  std::unordered_map<uint64_t, uint32_t> values LONGWIRE_GUARDED_BY(mutex);  // by handle
};

Conditions& TheConditions() {
  static auto* conditions = new Conditions;  // streams' threads may outlive main
  return *conditions;
}

}  // namespace

void DefineCondition(uint64_t handle, uint32_t value) {
  Conditions& all = TheConditions();
  base::MutexLock lock(all.mutex);
  all.values[handle] = value;
}

void ForgetCondition(uint64_t handle) {
  Conditions& all = TheConditions();
  base::MutexLock lock(all.mutex);
  all.values.erase(handle);
}

bool SetCondition(uint64_t handle, uint32_t value) {
  Conditions& all = TheConditions();
  base::MutexLock lock(all.mutex);
  auto found = all.values.find(handle);
  if (found == all.values.end()) return false;
  found->second = value;
  return true;
}

uint32_t ConditionValue(uint64_t handle) {
  Conditions& all = TheConditions();
  base::MutexLock lock(all.mutex);
  auto found = all.values.find(handle);
  return found == all.values.end() ? 0 : found->second;
}

}  // namespace softgpu
