// Whether a server's answer to an opening fits what was asked for. The server is not trusted:
// device memory lies where the answer says, and sizes and counts of it are computed with.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "wire/open.h"

namespace longwire::shim {

// What the request offered and wanted.
struct Asked {
  std::span<const wire::Window> windows;
  uint32_t lanes = 0;
  bool shares_memory = false;
  uint32_t bridge_lanes = 0;  // of the lanes
};

// Why a session must not be opened with this answer; empty if it can be.
std::string ProblemOfReply(const wire::OpenReply& reply, const Asked& asked);

}  // namespace longwire::shim
