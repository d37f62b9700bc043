#include "softgpu/engine/run/conditions.h"

#include <mutex>
#include <unordered_map>

namespace softgpu {
namespace {

struct Conditions {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint32_t> values;  // guarded by mutex
};

Conditions& TheConditions() {
  static auto* conditions = new Conditions;  // streams' threads may outlive main
  return *conditions;
}

}  // namespace

void DefineCondition(uint64_t handle, uint32_t value) {
  std::lock_guard lock(TheConditions().mutex);
  TheConditions().values[handle] = value;
}

void ForgetCondition(uint64_t handle) {
  std::lock_guard lock(TheConditions().mutex);
  TheConditions().values.erase(handle);
}

bool SetCondition(uint64_t handle, uint32_t value) {
  std::lock_guard lock(TheConditions().mutex);
  auto found = TheConditions().values.find(handle);
  if (found == TheConditions().values.end()) return false;
  found->second = value;
  return true;
}

uint32_t ConditionValue(uint64_t handle) {
  std::lock_guard lock(TheConditions().mutex);
  auto found = TheConditions().values.find(handle);
  return found == TheConditions().values.end() ? 0 : found->second;
}

}  // namespace softgpu
