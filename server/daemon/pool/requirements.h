// What a program asks of the server or the pool beside a number of devices.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace longwire::daemon {

struct Requirements {
  uint64_t bytes = 0;                         // LONGWIRE_MEMORY, on each device; 0: it does not say
  std::map<std::string, std::string> labels;  // LONGWIRE_LABELS
  uint64_t time_limit = 0;                    // LONGWIRE_TIME_LIMIT, in seconds; 0: it has none
  std::string program_id;                     // LONGWIRE_PROGRAM_ID; empty: it has one server
  bool waits = false;                         // LONGWIRE_WAIT: it asks again where there is no room
  bool waits_by_default = false;  // so it does if its tenant's programs wait (wire/open.h)
};

// From the variables of the opening request. False with a sentence when one cannot be read.
bool ReadRequirements(const std::vector<std::string>& environment, Requirements* requirements,
                      std::string* sentence);

}  // namespace longwire::daemon
