// What one session has used, as it is kept: one JSON object in one line. docs/usage.md lists its
// fields for people, cli/usage reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "link/transport/log.h"

namespace longwire::daemon {

struct UsageRecord {
  uint64_t session = 0;
  std::string identity, tenant, program, host, peer;
  std::string program_id;  // the same for all sessions of a program with several servers
  uint32_t pid = 0;
  std::vector<int32_t> devices;
  uint64_t opened = 0;  // microseconds since 1970
  uint64_t ended = 0;
  // Unset: not known, since the session ended while there was no daemon.
  std::optional<double> gpu_seconds, memory_byte_hours;
  std::optional<uint64_t> bytes_up, bytes_down, calls;
  bool memory_estimated = false;
  uint32_t code = 0;
  std::string reason;  // why it ended
};

// In words; a program that just ended has a reason, too.
std::string ReasonOf(const UsageRecord& record);
// "2026-11-26T19:20:11.123Z".
std::string UtcText(uint64_t microseconds);
// Without the end of the line.
std::string JsonLine(const UsageRecord& record);
// For the log: a sentence, and the fields that the record's line in the journal has.
std::string UsageSentence(const UsageRecord& record);
transport::LogFields UsageFields(const UsageRecord& record);

}  // namespace longwire::daemon
