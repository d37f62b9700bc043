// Figures of remote against local as one HTML page that needs nothing else: a picture and a table
// for each group.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace longwire::cli {

struct BenchRow {
  std::string name, unit;                // a unit that ends in "/s" is a rate: more is better
  std::optional<double> native, remote;  // medians
  std::optional<double> native_worst, remote_worst;
};

struct BenchGroup {
  std::string title;
  std::vector<std::string> facts;  // a paragraph each: host, server, date
  std::vector<BenchRow> rows;      // none: no picture
  std::string raw;                 // output that is shown as it is
};

// How many times as long it takes remotely; nullopt where one side is missing or nothing.
std::optional<double> TimesAsLong(const BenchRow& row);

std::string BenchPage(const std::string& title, const std::vector<BenchGroup>& groups);

}  // namespace longwire::cli
