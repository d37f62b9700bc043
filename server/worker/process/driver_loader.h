// Finds and opens the driver library that --driver names.
#pragma once

#include <string>
#include <vector>

#include "server/worker/support/driver.h"

namespace longwire::worker {

struct LoadedDriver {
  DriverTable table;
  std::string path;
  std::vector<std::string> missing;  // functions that it lacks, see LoadDriverTable
};

// `name`: a path; "software", the software device beside this binary; or "auto", the machine's own
// driver if it initialises, else the software device, said loudly. False with a sentence on
// failure.
bool LoadDriver(const std::string& name, LoadedDriver* driver, std::string* sentence);

// The software device's library beside the running binary.
std::string SoftwareDriverPath();

}  // namespace longwire::worker
