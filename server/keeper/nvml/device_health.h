// Asks NVIDIA's management library each second how the device is, on a thread of its own: some of
// its answers take milliseconds. Where there is no such library, or it does not know the device (a
// software device), there is no thread and nothing is known.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "server/keeper/nvml/nvml_library.h"
#include "server/protocol/health.h"
#include "wire/descriptors.h"

namespace longwire::keeper {

class HealthWatch {
 public:
  // `driver`: the path of the driver's library; `uuid`: the device's, 16 bytes.
  HealthWatch(const std::string& driver, const std::string& uuid);
  ~HealthWatch();

  // Readable when there is something new, until it is taken. -1: there never is.
  int descriptor() const { return event_.get(); }
  std::optional<DeviceHealth> Take() LONGWIRE_EXCLUDES(mutex_);

 private:
  using Device = void*;
  void Run();
  DeviceHealth Ask() const;
  // Waits a second, or until there is an error of the device.
  void WaitForErrors();

  NvmlLibrary library_;
  Device device_ = nullptr;
  Device errors_ = nullptr;  // a set of events; null: the library tells of none
  uint64_t xids_ = 0;        // by the thread
  uint64_t last_xid_ = 0;    // likewise
  wire::Descriptor event_;
  std::atomic<bool> stop_{false};

  base::Mutex mutex_{base::ranks::kDeviceHealth};
  std::optional<DeviceHealth> newest_ LONGWIRE_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace longwire::keeper
