// The picture as one JSON object, for scripts.
#include <cstdio>

#include "cli/text.h"
#include "cli/top/sections.h"

namespace longwire::cli::top {
namespace {

std::string Number(const std::optional<double>& value) {
  if (!value) return "null";
  char text[64];
  std::snprintf(text, sizeof(text), "%.6f", *value);
  return text;
}

const char* Truth(bool value) { return value ? "true" : "false"; }

const char* GateName(Gate gate) {
  constexpr const char* kNames[] = {"open", "closed", "stopped"};
  return kNames[static_cast<int>(gate)];
}

template <class Items, class Text>
std::string List(const Items& items, Text text) {
  std::string list;
  for (const auto& item : items) list += (list.empty() ? "" : ",") + text(item);
  return "[" + list + "]";
}

// Members that go behind others.
std::string HealthJson(const transport::DeviceHealth& health) {
  auto member = [](const char* name, const std::string& value) {
    return std::string(",\"") + name + "\":" + value;
  };
  auto known = [](bool has, auto value) { return has ? std::to_string(value) : "null"; };
  return member("power_watts", known(health.has_power_watts(), health.power_watts())) +
         member("power_limit_watts",
                known(health.has_power_limit_watts(), health.power_limit_watts())) +
         member("temperature_celsius",
                known(health.has_temperature_celsius(), health.temperature_celsius())) +
         member("sm_clock_mhz", known(health.has_sm_clock_mhz(), health.sm_clock_mhz())) +
         member("memory_clock_mhz",
                known(health.has_memory_clock_mhz(), health.memory_clock_mhz())) +
         member("throttle_reasons", health.has_throttling()
                                        ? List(health.throttling().reasons(), JsonString)
                                        : "null") +
         member("ecc_uncorrected", known(health.has_ecc_uncorrected(), health.ecc_uncorrected())) +
         member("xid_errors", known(health.has_xids(), health.xids().count()));
}

std::string Json(const DeviceRow& row) {
  return "{\"device\":" + std::to_string(row.ordinal) + ",\"name\":" + JsonString(row.name) +
         ",\"busy\":" + Number(row.busy) + ",\"memory\":" + std::to_string(row.leased) +
         ",\"memory_total\":" + std::to_string(row.total) +
         ",\"sessions\":" + std::to_string(row.sessions) + ",\"cordoned\":" + Truth(row.cordoned) +
         HealthJson(row.health) + "}";
}

std::string Json(const TenantRow& row) {
  const bool limited = row.memory_limit != UINT64_MAX;
  return "{\"tenant\":" + JsonString(row.name) + ",\"share_had\":" + Number(row.had) +
         ",\"share_due\":" + Number(row.due) + ",\"sessions\":" + std::to_string(row.sessions) +
         ",\"waiting\":" + std::to_string(row.waiting) +
         ",\"held_back_by\":" + List(row.held_by, JsonString) +
         ",\"gpu_seconds_per_second\":" + Number(row.gpu) +
         ",\"memory\":" + std::to_string(row.memory) +
         ",\"memory_limit\":" + (limited ? std::to_string(row.memory_limit) : "null") + "}";
}

std::string Json(const SessionRow& row) {
  auto number = [](int32_t device) { return std::to_string(device); };
  return "{\"session\":" + std::to_string(row.id) + ",\"program\":" + JsonString(row.program) +
         (row.program_id.empty() ? "" : ",\"program_id\":" + JsonString(row.program_id)) +
         ",\"host\":" + JsonString(row.host) + ",\"identity\":" + JsonString(row.identity) +
         ",\"tenant\":" + JsonString(row.tenant) + ",\"devices\":" + List(row.devices, number) +
         ",\"gpu_seconds_per_second\":" + Number(row.gpu) +
         ",\"memory\":" + std::to_string(row.memory) +
         ",\"bytes_up_per_second\":" + Number(row.up) +
         ",\"bytes_down_per_second\":" + Number(row.down) +
         ",\"round_trips_per_second\":" + Number(row.round_trips) +
         ",\"launch_queueing_seconds\":" + Number(row.queue) +
         ",\"launch_to_start_seconds\":" + Number(row.start) + ",\"gate\":\"" + GateName(row.gate) +
         "\",\"held\":" + Truth(row.waits) + "}";
}

}  // namespace

std::string PictureJson(const Picture& picture) {
  auto json = [](const auto& row) { return Json(row); };
  return "{\"server\":" + JsonString(picture.server) +
         ",\"version\":" + JsonString(picture.version) + ",\"host\":" + JsonString(picture.host) +
         ",\"uptime_seconds\":" + Number(picture.uptime) +
         ",\"interval_seconds\":" + Number(picture.interval) +
         ",\"draining\":" + Truth(picture.draining) +
         ",\"problem\":" + (picture.problem.empty() ? "null" : JsonString(picture.problem)) +
         ",\"devices\":" + List(picture.devices, json) +
         ",\"tenants\":" + List(picture.tenants, json) +
         ",\"sessions\":" + List(picture.sessions, json) + "}";
}

}  // namespace longwire::cli::top
