// One line per event on standard error, with the time, the level and, where there is one, the
// session's number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace longwire::transport {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// "error", "warning", "info" or "debug"; false for anything else.
bool ParseLogLevel(std::string_view text, LogLevel* level);
void SetLogLevel(LogLevel level);
bool Logs(LogLevel level);
// `session` 0: none.
void Log(LogLevel level, uint64_t session, std::string_view text);
inline void Log(LogLevel level, std::string_view text) { Log(level, 0, text); }

}  // namespace longwire::transport
