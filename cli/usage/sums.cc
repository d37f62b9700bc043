#include "cli/usage/sums.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "cli/text.h"

namespace longwire::cli::usage {
namespace {

using Row = std::array<std::string, 7>;

const char* NameOf(By by) {
  constexpr const char* kNames[] = {"tenant", "identity", "program"};
  return kNames[static_cast<int>(by)];
}

std::string Number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

// A sum of doubles as a whole number of bytes; beyond 2^64 it is as many as there can be.
std::string Bytes(double value) {
  constexpr double kLargest = 18446744073709549568.0;  // the largest double below 2^64
  return BytesText(static_cast<uint64_t>(std::min(value, kLargest)));
}

Row RowOf(const std::string& name, const Sum& sum) {
  return {Printable(name),
          std::to_string(sum.sessions),
          Number(sum.gpu_seconds, 3) + " s",
          Bytes(sum.memory_byte_hours) + " h",
          Bytes(sum.bytes_up),
          Bytes(sum.bytes_down),
          Number(sum.calls, 0)};
}

// Columns as characters, not bytes, of UTF-8.
size_t Length(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xc0) != 0x80; }));
}

std::string Table(const std::vector<Row>& rows) {
  std::array<size_t, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Length(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Length(row[i]), ' ');
      text += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    text += "\n";
  }
  return text;
}

std::string Lacks(const Sums& sums) {
  std::string text;
  auto say = [&](const char* what, uint64_t count, const char* then) {
    if (count != 0) text += what + std::to_string(count) + then + "\n";
  };
  say("sessions that ended while there was no longwired: ", sums.total.unknown,
      "; what they used is not known and not in the sums");
  say("sessions whose memory is estimated in part: ", sums.total.estimated, "");
  say("damaged lines: ", sums.read.damaged, "; what they told is not in the sums");
  return text;
}

std::string SumJson(const Sum& sum) {
  return "\"sessions\":" + std::to_string(sum.sessions) +
         ",\"sessions_unknown\":" + std::to_string(sum.unknown) +
         ",\"sessions_estimated\":" + std::to_string(sum.estimated) +
         ",\"gpu_seconds\":" + Number(sum.gpu_seconds, 6) +
         ",\"memory_byte_hours\":" + Number(sum.memory_byte_hours, 6) +
         ",\"bytes_up\":" + Number(sum.bytes_up, 0) +
         ",\"bytes_down\":" + Number(sum.bytes_down, 0) + ",\"calls\":" + Number(sum.calls, 0);
}

}  // namespace

void Sum::Add(const Record& record) {
  ++sessions;
  if (!record.known) {
    ++unknown;
    return;
  }
  estimated += record.estimated ? 1 : 0;
  gpu_seconds += record.gpu_seconds;
  memory_byte_hours += record.memory_byte_hours;
  bytes_up += record.bytes_up;
  bytes_down += record.bytes_down;
  calls += record.calls;
}

void Sums::Add(const Record& record, const Options& options) {
  if (record.ended < options.since || record.ended >= options.until) return;
  const std::string* names[] = {&record.tenant, &record.identity, &record.program};
  groups[*names[static_cast<int>(options.by)]].Add(record);
  total.Add(record);
}

std::string SumsText(const Sums& sums, const Options& options) {
  std::string title = NameOf(options.by);
  std::ranges::transform(title, title.begin(), [](char c) { return static_cast<char>(c - 32); });
  std::vector<Row> rows = {{title, "SESSIONS", "GPU TIME", "MEMORY x TIME", "UP", "DOWN", "CALLS"}};
  for (const auto& [name, sum] : sums.groups) rows.push_back(RowOf(name, sum));
  if (sums.groups.size() != 1) rows.push_back(RowOf("(all)", sums.total));
  return Table(rows) + Lacks(sums);
}

std::string SumsJson(const Sums& sums, const Options& options) {
  std::string list;
  for (const auto& [name, sum] : sums.groups) {
    list += (list.empty() ? "{\"" : ",{\"") + std::string(NameOf(options.by)) +
            "\":" + JsonString(name) + "," + SumJson(sum) + "}";
  }
  return "{\"by\":\"" + std::string(NameOf(options.by)) + "\",\"groups\":[" + list +
         "],\"total\":{" + SumJson(sums.total) + "},\"lines\":" + std::to_string(sums.read.lines) +
         ",\"damaged_lines\":" + std::to_string(sums.read.damaged) + "}";
}

}  // namespace longwire::cli::usage
