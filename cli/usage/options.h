// What longwire usage is asked for.
#pragma once

#include <cstdint>
#include <string>

#include "cli/commands.h"

namespace longwire::cli::usage {

enum class By { kTenant, kIdentity, kProgram };

struct Options {
  std::string file;           // empty: where longwired of this host keeps it
  int64_t since = 0;          // microseconds since 1970: sessions that ended from then on
  int64_t until = INT64_MAX;  // and before this
  By by = By::kTenant;
  bool json = false;
};

// Microseconds since 1970, from "2026-11-26", "2026-11-26T19:20", "2026-11-26T19:20:11.5Z" (UTC
// all of them) or "36h", so long before `now` (s, min, h, d, w). False for anything else.
bool ParseTime(const std::string& text, int64_t now, int64_t* time);
void Describe(CLI::App& command, int64_t now, Options* options);

}  // namespace longwire::cli::usage
