// The records of what sessions have used, as longwired has written them
// (server/daemon/usage/usage_record.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace longwire::cli::usage {

struct Record {
  std::string identity, tenant, program;
  int64_t ended = 0;   // microseconds since 1970
  bool known = false;  // how much it has used; false: the server did not see it
  bool estimated = false;
  double gpu_seconds = 0;
  double memory_byte_hours = 0;
  double bytes_up = 0;
  double bytes_down = 0;
  double calls = 0;
};

// nullopt: the line is no record.
std::optional<Record> ParseRecord(const std::string& line);

struct Read {
  uint64_t lines = 0;
  uint64_t damaged = 0;  // of these: not understood
  uint32_t files = 0;
};
// Calls `take` for each record of the file and of those before it (FILE.1, …). False with a
// sentence if there is none, or one cannot be read.
bool ReadRecords(const std::string& file, const std::function<void(const Record&)>& take,
                 Read* read, std::string* sentence);

}  // namespace longwire::cli::usage
