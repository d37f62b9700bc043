// What NVIDIA's management library says of the devices. What it does not know has no series.
#include <algorithm>

#include "server/daemon/metrics/scrape.h"

namespace longwire::daemon {
namespace {

using transport::DeviceHealth;

constexpr double kHertz = 1e6;

// Of reasons that are not there, too, so that one that begins is seen as a change.
constexpr const char* kReasons[] = {"gpu_idle",
                                    "applications_clocks_setting",
                                    "sw_power_cap",
                                    "hw_slowdown",
                                    "sync_boost",
                                    "sw_thermal_slowdown",
                                    "hw_thermal_slowdown",
                                    "hw_power_brake_slowdown",
                                    "display_clock_setting",
                                    "other"};

void AddThrottling(const Scrape& scrape, Families* families) {
  Family& throttled =
      families->Gauge("longwire_device_throttled",
                      "1 while the device's clocks are lower than they could be for this reason.");
  for (const transport::Device& device : scrape.figures.devices()) {
    if (!device.health().has_throttling()) continue;
    const auto& reasons = device.health().throttling().reasons();
    for (const char* reason : kReasons) {
      const bool is_one = std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
      throttled.Add({{"device", std::to_string(device.ordinal())}, {"reason", reason}},
                    is_one ? 1 : 0);
    }
  }
}

void AddErrors(const Scrape& scrape, Families* families) {
  Family& memory = families->Counter(
      "longwire_device_ecc_errors_total",
      "Errors of the device's memory since its driver was loaded, corrected and not.");
  Family& xids = families->Counter(
      "longwire_device_xid_errors_total",
      "Errors of the device that NVIDIA numbers (Xid), since the device's keeper began.");
  Family& last = families->Gauge("longwire_device_xid_last",
                                 "The number of the last such error (Xid); 0: there was none.");
  for (const transport::Device& device : scrape.figures.devices()) {
    const std::string number = std::to_string(device.ordinal());
    const DeviceHealth& health = device.health();
    auto kind = [&](const char* name) { return Labels{{"device", number}, {"kind", name}}; };
    if (health.has_ecc_corrected()) memory.Add(kind("corrected"), health.ecc_corrected());
    if (health.has_ecc_uncorrected()) memory.Add(kind("uncorrected"), health.ecc_uncorrected());
    if (!health.has_xids()) continue;
    xids.Add({{"device", number}}, health.xids().count());
    last.Add({{"device", number}}, health.xids().last());
  }
}

}  // namespace

void AddHealth(const Scrape& scrape, Families* families) {
  Family& power = families->Gauge("longwire_device_power_watts", "What the device draws.");
  Family& limit =
      families->Gauge("longwire_device_power_limit_watts", "What the device may draw at most.");
  Family& temperature =
      families->Gauge("longwire_device_temperature_celsius", "The device's temperature.");
  Family& clock = families->Gauge("longwire_device_clock_hertz",
                                  "Clocks of the device: sm, of its multiprocessors; memory.");
  Family& used = families->Gauge("longwire_device_utilization_ratio",
                                 "Part of the last moments in which kernels of anybody ran (gpu), "
                                 "and in which memory was read "
                                 "or written (memory), 0 to 1, as nvidia-smi shows it.");
  for (const transport::Device& device : scrape.figures.devices()) {
    const std::string number = std::to_string(device.ordinal());
    const DeviceHealth& health = device.health();
    const Labels labels = {{"device", number}};
    auto of = [&](const char* name, const char* value) {
      return Labels{{"device", number}, {name, value}};
    };
    if (health.has_power_watts()) power.Add(labels, health.power_watts());
    if (health.has_power_limit_watts()) limit.Add(labels, health.power_limit_watts());
    if (health.has_temperature_celsius()) temperature.Add(labels, health.temperature_celsius());
    if (health.has_sm_clock_mhz()) clock.Add(of("clock", "sm"), kHertz * health.sm_clock_mhz());
    if (health.has_memory_clock_mhz()) {
      clock.Add(of("clock", "memory"), kHertz * health.memory_clock_mhz());
    }
    if (health.has_gpu_utilization_percent()) {
      used.Add(of("part", "gpu"), health.gpu_utilization_percent() / 100.0);
    }
    if (health.has_memory_utilization_percent()) {
      used.Add(of("part", "memory"), health.memory_utilization_percent() / 100.0);
    }
  }
  AddThrottling(scrape, families);
  AddErrors(scrape, families);
}

}  // namespace longwire::daemon
