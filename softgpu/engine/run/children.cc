#include "softgpu/engine/run/children.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/try.h"
#include "softgpu/engine/memory/private_memory.h"

namespace softgpu {
namespace {

constexpr size_t kMaxErrors = size_t{1} << 20;  // threads whose error is kept

uint64_t BufferBytes(const Kernel& kernel) { return std::max<uint64_t>(kernel.parameter_bytes, 1); }

}  // namespace

Children::~Children() {
  for (auto& [buffer, work] : prepared_) Release(work);
  for (auto* works : {&launched_, &tail_}) {
    for (const ChildWork& work : *works) Release(work);
  }
}

DeviceError Children::Reserve() {
  if (depth_ >= kMaxDepth) return kDeviceLaunchTooDeep;
  if (++family_.pending <= family_.most_pending) return kDeviceSuccess;
  --family_.pending;
  return kDeviceTooManyPending;
}

void Children::Release(const ChildWork& work) {
  if (work.kernel != nullptr) PrivateMemory::Get().Free(work.parameters, BufferBytes(*work.kernel));
  --family_.pending;
}

DeviceError Children::Prepare(const Kernel& kernel, LaunchConfig config, uint64_t* buffer) {
  if (!CheckShape(kernel, config).ok() || !ResolveCluster(kernel, &config).ok()) {
    return kDeviceInvalidConfiguration;
  }
  LONGWIRE_TRY(Reserve());
  *buffer = PrivateMemory::Get().Allocate(BufferBytes(kernel));
  if (*buffer == 0) {
    --family_.pending;
    return kDeviceOutOfMemory;
  }
  std::memset(reinterpret_cast<void*>(*buffer), 0, BufferBytes(kernel));
  ChildWork work;
  work.kernel = &kernel;
  work.config = std::move(config);
  work.parameters = *buffer;
  base::MutexLock lock(mutex_);
  prepared_.emplace(*buffer, std::move(work));
  return kDeviceSuccess;
}

DeviceError Children::Launch(uint64_t buffer, bool tail) {
  base::MutexLock lock(mutex_);
  auto found = prepared_.find(buffer);
  if (found == prepared_.end()) return kDeviceInvalidValue;
  (tail ? tail_ : launched_).push_back(std::move(found->second));
  prepared_.erase(found);
  return kDeviceSuccess;
}

DeviceError Children::Add(ChildWork work, bool tail) {
  LONGWIRE_TRY(Reserve());
  base::MutexLock lock(mutex_);
  (tail ? tail_ : launched_).push_back(std::move(work));
  return kDeviceSuccess;
}

void Children::SetError(uint64_t thread, DeviceError error) {
  if (error == kDeviceSuccess) return;
  base::MutexLock lock(mutex_);
  if (errors_.size() < kMaxErrors) errors_[thread] = error;
}

DeviceError Children::LastError(uint64_t thread, bool forget) {
  base::MutexLock lock(mutex_);
  auto found = errors_.find(thread);
  if (found == errors_.end()) return kDeviceSuccess;
  DeviceError error = found->second;
  if (forget) errors_.erase(found);
  return error;
}

std::vector<ChildWork> Children::Take() {
  base::MutexLock lock(mutex_);
  std::vector<ChildWork> all = std::exchange(launched_, {});
  std::move(tail_.begin(), tail_.end(), std::back_inserter(all));
  tail_.clear();
  return all;
}

}  // namespace softgpu
