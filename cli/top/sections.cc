#include "cli/top/sections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/text.h"
#include "cli/top/table.h"

namespace longwire::cli::top {
namespace {

constexpr const char* kUnknown = "-";
constexpr const char* kAbsent = "n/a";  // longwired knows no such figure

std::string Formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// At most five characters: "512M", "1.5G".
std::string Short(double value, double step, const char* const* units) {
  size_t unit = 0;
  for (; value >= 999.5 && units[unit + 1] != nullptr; ++unit) value /= step;
  return Formatted(unit != 0 && value < 9.95 ? "%.1f" : "%.0f", value) + units[unit];
}

std::string Bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "K", "M", "G", "T", "P", "E", nullptr};
  return Short(static_cast<double>(bytes), 1024, kUnits);
}

std::string BytesPerSecond(const Rate& rate) {
  return rate ? Bytes(static_cast<uint64_t>(std::llround(*rate))) : kUnknown;
}

std::string PerSecond(const Rate& rate) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", nullptr};
  return rate ? Short(*rate, 1000, kUnits) : kUnknown;
}

std::string Percent(const std::optional<double>& part) {
  return part ? Formatted("%.0f%%", 100 * *part) : kUnknown;
}

std::string Join(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return list;
}

// "0-3,7".
std::string DevicesText(const SessionRow& row) {
  std::vector<std::string> spans;
  for (size_t i = 0; i < row.devices.size();) {
    size_t end = i + 1;
    while (end < row.devices.size() && row.devices[end] == row.devices[end - 1] + 1) ++end;
    spans.push_back(std::to_string(row.devices[i]));
    if (end - i > 1) spans.back() += "-" + std::to_string(row.devices[end - 1]);
    i = end;
  }
  return spans.empty() ? kUnknown : Join(spans);
}

std::string GateText(const SessionRow& row) {
  if (row.gate == Gate::kStopped) return "stop";
  if (row.gate == Gate::kClosed) return row.waits ? "HELD" : "shut";
  return "open";
}

// A path's last part: the beginning of most paths is the same.
std::string FileName(const std::string& program) { return program.substr(program.rfind('/') + 1); }

std::string MemoryText(uint64_t used, uint64_t limit) {
  return Bytes(used) + (limit == UINT64_MAX ? "" : "/" + Bytes(limit));
}

std::string Time(const std::optional<double>& seconds) {
  if (!seconds) return kUnknown;
  if (*seconds < 1e-3) return Formatted("%.0fus", *seconds * 1e6);
  return *seconds < 1 ? Formatted("%.1fms", *seconds * 1e3) : Formatted("%.1fs", *seconds);
}

template <class Number>
std::string Unit(bool known, Number number, const char* unit) {
  return known ? Formatted("%.0f", static_cast<double>(number)) + unit : kAbsent;
}

// Lower clocks by orders, or for want of work, are no trouble.
bool IsSlowed(const transport::DeviceHealth& health) {
  return std::ranges::any_of(health.throttling().reasons(), [](const std::string& reason) {
    return reason.ends_with("slowdown") || reason == "sw_power_cap";
  });
}

std::string StateText(const DeviceRow& row) {
  if (row.cordoned) return "cordoned";
  if (row.health.xids().count() != 0) return "Xid " + std::to_string(row.health.xids().last());
  return IsSlowed(row.health) ? "slowed" : "in use";
}

bool KnowsAll(const DeviceRow& row) {
  return row.health.has_power_watts() && row.health.has_temperature_celsius() &&
         row.health.has_sm_clock_mhz();
}

}  // namespace

std::vector<std::string> DeviceLines(const Picture& picture, int width) {
  Table table({{"DEVICE", 6, true},
               {"NAME", 12, false},
               {"BUSY", 4, true},
               {"MEMORY", 11, true},
               {"SESSIONS", 8, true, 1},
               {"POWER", 5, true, 3},
               {"TEMP", 4, true, 2},
               {"CLOCK", 7, true, 4},
               {"STATE", 8}});
  for (const DeviceRow& row : picture.devices) {
    const transport::DeviceHealth& health = row.health;
    table.Add({std::to_string(row.ordinal), row.name, Percent(row.busy),
               MemoryText(row.leased, row.total), std::to_string(row.sessions),
               Unit(health.has_power_watts(), health.power_watts(), "W"),
               Unit(health.has_temperature_celsius(), health.temperature_celsius(), "C"),
               Unit(health.has_sm_clock_mhz(), health.sm_clock_mhz(), "MHz"), StateText(row)});
  }
  return table.Lines(width);
}

std::vector<std::string> TenantLines(const Picture& picture, int width) {
  Table table({{"TENANT", 12},
               {"SHARE", 5, true},
               {"DUE", 4, true},
               {"SESSIONS", 8, true, 1},
               {"WAIT", 4, true},
               {"GPU%", 5, true},
               {"MEMORY", 9, true},
               {"HELD BACK BY", 12, false, 2}});
  for (const TenantRow& row : picture.tenants) {
    table.Add({row.name, Percent(row.had), Percent(row.due), std::to_string(row.sessions),
               std::to_string(row.waiting), Percent(row.gpu),
               MemoryText(row.memory, row.memory_limit),
               row.held_by.empty() ? kUnknown : Join(row.held_by)});
  }
  return table.Lines(width);
}

std::vector<std::string> SessionLines(const Picture& picture, int width, Column sorted,
                                      bool reversed) {
  std::vector<Table::Column> columns = {
      {"SESSION", 7, true},  {"PROGRAM", 10},      {"IDENTITY", 8},        {"TENANT", 8, false, 4},
      {"HOST", 8, false, 1}, {"DEV", 4, false, 2}, {"GPU%", 4, true},      {"MEM", 4, true},
      {"UP/s", 4, true},     {"DOWN/s", 6, true},  {"TRIP/s", 6, true, 3}, {"QUEUE", 5, true, 6},
      {"START", 5, true, 5}, {"GATE", 4}};
  columns[static_cast<size_t>(sorted)].title += reversed ? "^" : "v";
  Table table(std::move(columns));
  for (const SessionRow& row : picture.sessions) {
    const std::string id = row.program_id.empty() ? "" : " " + row.program_id;
    table.Add({std::to_string(row.id), FileName(row.program) + id, row.identity, row.tenant,
               row.host, DevicesText(row), Percent(row.gpu), Bytes(row.memory),
               BytesPerSecond(row.up), BytesPerSecond(row.down), PerSecond(row.round_trips),
               Time(row.queue), Time(row.start), GateText(row)});
  }
  return table.Lines(width);
}

std::string HeadLine(const Picture& picture) {
  return "longwired " + Printable(picture.version) + " at " + Printable(picture.server) +
         " (host " + Printable(picture.host) + "), up " + SecondsText(picture.uptime) + ", " +
         std::to_string(picture.sessions.size()) +
         (picture.sessions.size() == 1 ? " session" : " sessions") +
         (picture.left_out ? " of your tenant" : "");
}

std::string AlarmLine(const Picture& picture) {
  if (!picture.problem.empty()) return "problem: " + Printable(picture.problem);
  return picture.draining ? "draining: no new sessions are opened (d takes it back)" : "";
}

std::string PictureText(Picture picture) {
  Sort(Column::kGpu, false, &picture.sessions);
  std::string text = HeadLine(picture) + "\n";
  if (picture.problem.empty() && picture.draining) text += "draining: no new sessions are opened\n";
  if (!picture.problem.empty()) text += AlarmLine(picture) + "\n";
  for (const auto& lines : {DeviceLines(picture, 0), TenantLines(picture, 0),
                            SessionLines(picture, 0, Column::kGpu, false)}) {
    text += "\n";
    for (std::string line : lines) {
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  if (std::ranges::all_of(picture.devices, KnowsAll)) return text;
  return text + "\nn/a: NVIDIA's management library (NVML) does not tell it of this device\n";
}

}  // namespace longwire::cli::top
