// One line per event on standard error, with the time, the level and, where there is one, the
// session's number; or, where a sink takes them, records that programs can search.
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

// What a line is about. What is not known stays empty; the words live as long as the call.
struct LogSubject {
  uint64_t session = 0;
  std::string_view tenant{};  // its name in the configuration
  std::string_view peer{};    // who is at the other end: "192.0.2.7:51234"
};

void Log(LogLevel level, const LogSubject& subject, std::string_view text);
inline void Log(LogLevel level, uint64_t session, std::string_view text) {
  Log(level, LogSubject{.session = session}, text);
}
inline void Log(LogLevel level, std::string_view text) { Log(level, LogSubject{}, text); }

// Takes a line in place of standard error: `message` is the line without its time and its level.
// False: it could not, and the line is written after all. Called by any thread.
using LogSink = bool (*)(LogLevel level, const LogSubject& subject, const std::string& message);
void SetLogSink(LogSink sink);  // nullptr: none

}  // namespace longwire::transport
