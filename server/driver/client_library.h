// Recognises Longwire's own client library, which has the same name as NVIDIA's driver. A server
// that took it for the driver would connect to itself.
#pragma once

#include <string>

namespace longwire {

// Reads the file; nothing of it is loaded. False also for a file that cannot be read.
bool IsClientLibrary(const std::string& path);

}  // namespace longwire
