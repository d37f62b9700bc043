#include "server/daemon/usage/usage_record.h"

#include <cstdio>
#include <ctime>
#include <utility>

#include "base/json.h"

namespace longwire::daemon {
namespace {

constexpr size_t kMaxText = 1024;  // of a name or a reason that others have given
constexpr const char* kUnknown = "null";

std::string NumberText(const std::optional<double>& value) {
  if (!value) return kUnknown;
  char text[48];
  snprintf(text, sizeof(text), "%.6f", *value);
  return text;
}

std::string NumberText(const std::optional<uint64_t>& value) {
  return value ? std::to_string(*value) : kUnknown;
}

std::string Quoted(const std::string& text) { return base::JsonString(text.substr(0, kMaxText)); }

std::string DevicesText(const UsageRecord& record) {
  std::string list;
  for (int32_t device : record.devices) {
    list += (list.empty() ? "" : ",") + std::to_string(device);
  }
  return list;
}

// Name and value as JSON, in the order of the line.
std::vector<std::pair<const char*, std::string>> JsonFields(const UsageRecord& record) {
  return {{"session", std::to_string(record.session)},
          {"identity", Quoted(record.identity)},
          {"tenant", Quoted(record.tenant)},
          {"program", Quoted(record.program)},
          {"program_id", record.program_id.empty() ? kUnknown : Quoted(record.program_id)},
          {"host", Quoted(record.host)},
          {"pid", std::to_string(record.pid)},
          {"devices", "[" + DevicesText(record) + "]"},
          {"opened", Quoted(UtcText(record.opened))},
          {"ended", Quoted(UtcText(record.ended))},
          {"gpu_seconds", NumberText(record.gpu_seconds)},
          {"memory_byte_hours", NumberText(record.memory_byte_hours)},
          {"memory_estimated", record.memory_estimated ? "true" : "false"},
          {"bytes_up", NumberText(record.bytes_up)},
          {"bytes_down", NumberText(record.bytes_down)},
          {"calls", NumberText(record.calls)},
          {"code", std::to_string(record.code)},
          {"reason", Quoted(ReasonOf(record))}};
}

}  // namespace

std::string ReasonOf(const UsageRecord& record) {
  return record.reason.empty() ? "its program ended" : record.reason.substr(0, kMaxText);
}

std::string UtcText(uint64_t microseconds) {
  const auto seconds = static_cast<time_t>(microseconds / 1'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(text + length, sizeof(text) - length, ".%03dZ",
           static_cast<int>(microseconds / 1000 % 1000));
  return text;
}

std::string JsonLine(const UsageRecord& record) {
  std::string line;
  for (const auto& [name, value] : JsonFields(record)) {
    line += (line.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + value;
  }
  return line + "}";
}

std::string UsageSentence(const UsageRecord& record) {
  if (!record.gpu_seconds) return "how much it has used is not known";
  return "has used " + NumberText(record.gpu_seconds) + " s of GPU time and " +
         NumberText(record.memory_byte_hours) + " byte-hours of device memory in " +
         NumberText(record.calls) + " calls";
}

transport::LogFields UsageFields(const UsageRecord& record) {
  auto known = [](std::string text) { return text == kUnknown ? "" : text; };
  return {{"IDENTITY", record.identity},
          {"PROGRAM", record.program},
          {"PROGRAM_ID", record.program_id},
          {"HOST", record.host},
          {"DEVICES", DevicesText(record)},
          {"OPENED", UtcText(record.opened)},
          {"ENDED", UtcText(record.ended)},
          {"GPU_SECONDS", known(NumberText(record.gpu_seconds))},
          {"MEMORY_BYTE_HOURS", known(NumberText(record.memory_byte_hours))},
          {"MEMORY_ESTIMATED", record.memory_estimated ? "1" : "0"},
          {"BYTES_UP", known(NumberText(record.bytes_up))},
          {"BYTES_DOWN", known(NumberText(record.bytes_down))},
          {"CALLS", known(NumberText(record.calls))},
          {"CODE", std::to_string(record.code)},
          {"REASON", ReasonOf(record)}};
}

}  // namespace longwire::daemon
