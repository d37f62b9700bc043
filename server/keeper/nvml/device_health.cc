#include "server/keeper/nvml/device_health.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "base/uuid_text.h"

namespace longwire::keeper {
namespace {

constexpr unsigned kInterval = 1000;  // milliseconds
constexpr unsigned kTemperatureOfGpu = 0;
constexpr unsigned kSm = 1, kMemory = 2;              // clocks
constexpr unsigned kCorrected = 0, kUncorrected = 1;  // errors of memory
constexpr unsigned kSinceTheDriver = 0;               // was loaded
constexpr unsigned long long kXidEvents = 8;          // critical errors

struct Utilization {
  unsigned gpu, memory;
};
struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

HealthWatch::HealthWatch(const std::string& driver, const std::string& uuid) : library_(driver) {
  if (library_.Call("nvmlInit_v2") != kNvmlSuccess) return;
  const std::string text = base::UuidText(uuid);
  if (library_.Call("nvmlDeviceGetHandleByUUID", text.c_str(), &device_) != kNvmlSuccess) return;
  if (library_.Call("nvmlEventSetCreate", &errors_) != kNvmlSuccess) errors_ = nullptr;
  if (errors_ != nullptr &&
      library_.Call("nvmlDeviceRegisterEvents", device_, kXidEvents, errors_) != kNvmlSuccess) {
    library_.Call("nvmlEventSetFree", errors_);
    errors_ = nullptr;
  }
  event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { Run(); });
}

HealthWatch::~HealthWatch() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

std::optional<DeviceHealth> HealthWatch::Take() {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof(count));
  base::MutexLock lock(mutex_);
  return newest_;
}

void HealthWatch::Run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (!stop_) {
    DeviceHealth health = Ask();
    {
      base::MutexLock lock(mutex_);
      if (newest_ != health) {
        newest_ = std::move(health);
        const uint64_t one = 1;
        (void)!write(event_.get(), &one, sizeof(one));
      }
    }
    WaitForErrors();
  }
}

void HealthWatch::WaitForErrors() {
  EventData event{};
  if (errors_ != nullptr) {
    const int code = library_.Call("nvmlEventSetWait_v2", errors_, &event, kInterval);
    if (code == kNvmlSuccess && (event.type & kXidEvents) != 0) {
      ++xids_;
      last_xid_ = event.data;
    }
    if (code == kNvmlSuccess || code == kNvmlTimeout) return;
    errors_ = nullptr;  // it tells of none any more
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(kInterval));
}

DeviceHealth HealthWatch::Ask() const {
  DeviceHealth health;
  auto number = [&](HealthFigure figure, const char* name, auto... which) {
    unsigned value = 0;
    if (library_.Call(name, device_, which..., &value) == kNvmlSuccess) health.Set(figure, value);
  };
  auto wide = [&](HealthFigure figure, const char* name, auto... which) {
    unsigned long long value = 0;
    const bool known = library_.Call(name, device_, which..., &value) == kNvmlSuccess;
    if (known) health.Set(figure, value);
    return known;
  };
  number(HealthFigure::kPower, "nvmlDeviceGetPowerUsage");
  number(HealthFigure::kPowerLimit, "nvmlDeviceGetEnforcedPowerLimit");
  number(HealthFigure::kTemperature, "nvmlDeviceGetTemperature", kTemperatureOfGpu);
  number(HealthFigure::kSmClock, "nvmlDeviceGetClockInfo", kSm);
  number(HealthFigure::kMemoryClock, "nvmlDeviceGetClockInfo", kMemory);
  Utilization used{};
  if (library_.Call("nvmlDeviceGetUtilizationRates", device_, &used) == kNvmlSuccess) {
    health.Set(HealthFigure::kGpuUtilization, used.gpu);
    health.Set(HealthFigure::kMemoryUtilization, used.memory);
  }
  // Under its newer name first.
  if (!wide(HealthFigure::kThrottleReasons, "nvmlDeviceGetCurrentClocksEventReasons")) {
    wide(HealthFigure::kThrottleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  wide(HealthFigure::kEccCorrected, "nvmlDeviceGetTotalEccErrors", kCorrected, kSinceTheDriver);
  wide(HealthFigure::kEccUncorrected, "nvmlDeviceGetTotalEccErrors", kUncorrected, kSinceTheDriver);
  if (errors_ != nullptr) {
    health.Set(HealthFigure::kXids, xids_);
    health.Set(HealthFigure::kLastXid, last_xid_);
  }
  return health;
}

}  // namespace longwire::keeper
