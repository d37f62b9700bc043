// Records of usage summed up, and the sums as text.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cli/usage/options.h"
#include "cli/usage/records.h"

namespace longwire::cli::usage {

struct Sum {
  uint64_t sessions = 0;
  uint64_t unknown = 0;    // of these: how much they used is not known, and not in the sums
  uint64_t estimated = 0;  // of these: their memory is estimated in part
  double gpu_seconds = 0;
  double memory_byte_hours = 0;
  double bytes_up = 0;
  double bytes_down = 0;
  double calls = 0;

  void Add(const Record& record);
};

struct Sums {
  std::map<std::string, Sum> groups;  // by the name of the tenant, identity or program
  Sum total;
  Read read;

  // Leaves it out unless it ended in the time that is asked for.
  void Add(const Record& record, const Options& options);
};

// A table, and sentences about what it lacks.
std::string SumsText(const Sums& sums, const Options& options);
std::string SumsJson(const Sums& sums, const Options& options);

}  // namespace longwire::cli::usage
