#include "server/daemon/sessions/health.h"

namespace longwire::daemon {
namespace {

using keeper::DeviceHealth;
using keeper::HealthFigure;

struct Reason {
  uint64_t bit;
  const char* name;
};
// The library's bits, by the names that nvidia-smi has for them.
constexpr Reason kReasons[] = {{0x1, "gpu_idle"},
                               {0x2, "applications_clocks_setting"},
                               {0x4, "sw_power_cap"},
                               {0x8, "hw_slowdown"},
                               {0x10, "sync_boost"},
                               {0x20, "sw_thermal_slowdown"},
                               {0x40, "hw_thermal_slowdown"},
                               {0x80, "hw_power_brake_slowdown"},
                               {0x100, "display_clock_setting"}};

double Watts(uint64_t milliwatts) { return static_cast<double>(milliwatts) / 1000; }

void FillThrottling(uint64_t bits, transport::ThrottleReasons* throttling) {
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) throttling->add_reasons(reason.name);
    bits &= ~reason.bit;
  }
  if (bits != 0) throttling->add_reasons("other");
}

void Fill(const DeviceHealth& health, transport::DeviceHealth* out) {
  auto tell = [&](HealthFigure figure, auto set) {
    if (health.Has(figure)) set(health.Value(figure));
  };
  auto number = [](uint64_t value) { return static_cast<uint32_t>(value); };
  tell(HealthFigure::kPower, [&](uint64_t value) { out->set_power_watts(Watts(value)); });
  tell(HealthFigure::kPowerLimit,
       [&](uint64_t value) { out->set_power_limit_watts(Watts(value)); });
  tell(HealthFigure::kTemperature,
       [&](uint64_t value) { out->set_temperature_celsius(number(value)); });
  tell(HealthFigure::kSmClock, [&](uint64_t value) { out->set_sm_clock_mhz(number(value)); });
  tell(HealthFigure::kMemoryClock,
       [&](uint64_t value) { out->set_memory_clock_mhz(number(value)); });
  tell(HealthFigure::kGpuUtilization,
       [&](uint64_t value) { out->set_gpu_utilization_percent(number(value)); });
  tell(HealthFigure::kMemoryUtilization,
       [&](uint64_t value) { out->set_memory_utilization_percent(number(value)); });
  tell(HealthFigure::kThrottleReasons,
       [&](uint64_t value) { FillThrottling(value, out->mutable_throttling()); });
  tell(HealthFigure::kEccCorrected, [&](uint64_t value) { out->set_ecc_corrected(value); });
  tell(HealthFigure::kEccUncorrected, [&](uint64_t value) { out->set_ecc_uncorrected(value); });
  tell(HealthFigure::kXids, [&](uint64_t value) { out->mutable_xids()->set_count(value); });
  tell(HealthFigure::kLastXid,
       [&](uint64_t value) { out->mutable_xids()->set_last(number(value)); });
}

}  // namespace

void AddHealth(const warden::Stats& stats, transport::InspectReply* reply) {
  if (!stats.health) return;
  for (const warden::HealthOfDevice& known : stats.health->devices) {
    for (transport::Device& device : *reply->mutable_devices()) {
      if (device.ordinal() == known.device) Fill(known.health, device.mutable_health());
    }
  }
}

}  // namespace longwire::daemon
