// What longwire bench says beside its figures: without it they cannot be compared with others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/connect.h"

namespace longwire::cli {

struct BenchFacts {
  std::string server;                // as it was given
  std::string version;               // longwired's; empty: the server does not tell this user
  std::vector<std::string> devices;  // their names
  std::optional<double> round_trip;  // microseconds, median; none over the local socket
  unsigned processors = 0;           // of this host
  std::string date;                  // UTC, ISO 8601
};

BenchFacts GatherBenchFacts(const ServerOptions& options);
// A table's head and JSON's members, which end with a comma.
std::string TextOf(const BenchFacts& facts);
std::string JsonOf(const BenchFacts& facts);

}  // namespace longwire::cli
