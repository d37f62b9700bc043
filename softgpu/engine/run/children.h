// What a kernel launches: kernels, copies and fills, collected while its grid runs. They run after
// it, each with all that descends from it before the next, and the tail launches last.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/mutex.h"
#include "softgpu/engine/run/code.h"

namespace softgpu {

// CUDA runtime errors that the calls of kernels answer.
enum DeviceError : int {
  kDeviceSuccess = 0,
  kDeviceInvalidValue = 1,
  kDeviceOutOfMemory = 2,
  kDeviceInvalidConfiguration = 9,
  kDeviceInvalidPointer = 17,
  kDeviceLaunchTooDeep = 65,
  kDeviceTooManyPending = 69,
  kDeviceInvalidFunction = 98,
  kDeviceInvalidHandle = 400,
};

// A launch from the host and all that descends from it.
struct Family {
  explicit Family(uint32_t most) : most_pending(most) {}
  const uint32_t most_pending;
  std::atomic<uint32_t> pending{0};  // prepared and not yet over
};

struct ChildWork {
  enum class Kind : uint8_t { kKernel, kCopy, kFill };
  Kind kind = Kind::kKernel;
  const Kernel* kernel = nullptr;
  LaunchConfig config;
  uint64_t parameters = 0;  // address in private memory
  uint64_t target = 0, source = 0, bytes = 0;
  int value = 0;
};

class Children {
 public:
  static constexpr uint32_t kMaxDepth = 24;

  Children(Family& family, uint32_t depth) : family_(family), depth_(depth) {}
  ~Children();  // gives back what was prepared and never launched
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Memory for a kernel's parameters, in *buffer.
  DeviceError Prepare(const Kernel& kernel, LaunchConfig config, uint64_t* buffer);
  DeviceError Launch(uint64_t buffer, bool tail);
  DeviceError Add(ChildWork work, bool tail);  // a copy or fill

  // The error that a thread's calls gave last: each has its own.
  void SetError(uint64_t thread, DeviceError error);
  DeviceError LastError(uint64_t thread, bool forget);

  Family& family() const { return family_; }
  uint32_t depth() const { return depth_; }

  // Everything launched, in order. Whoever takes it calls Release for each. The grid has ended.
  std::vector<ChildWork> Take();
  void Release(const ChildWork& work);

 private:
  DeviceError Reserve();

  Family& family_;
  const uint32_t depth_;  // of the grid: 0 if the host launched it
  base::Mutex mutex_{base::ranks::kSoftgpuChildren};
  std::map<uint64_t, ChildWork> prepared_ LONGWIRE_GUARDED_BY(mutex_);  // by buffer
  std::vector<ChildWork> launched_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<ChildWork> tail_ LONGWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, DeviceError> errors_ LONGWIRE_GUARDED_BY(mutex_);  // by thread, if it failed
};

// launch.cc: whether a grid of this shape may be launched at all; a Status' code otherwise.
Status CheckShape(const Kernel& kernel, const LaunchConfig& config);

}  // namespace softgpu
