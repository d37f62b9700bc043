// One line per event on standard error: the time, the level, and the session's number if there is
// one. A sink can take the events instead, such as systemd's journal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longwire::transport {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// "error", "warning", "info" or "debug"; false for anything else.
bool ParseLogLevel(std::string_view text, LogLevel* level);
void SetLogLevel(LogLevel level);
// How many lines about one session, or about one address where there is no session, are written in
// a second, and ten times as many at once; 0: any number. Lines for debugging are not counted, and
// a later line says how many were left out.
void SetLogLimit(uint32_t lines_per_second);
uint64_t LogLinesLeftOut();
bool Logs(LogLevel level);

// Names, as they are in the journal behind LONGWIRE_, and their values.
using LogFields = std::vector<std::pair<const char*, std::string>>;

// What a line is about. Unknown fields stay empty. The text is used during the call only.
struct LogSubject {
  uint64_t session = 0;
  std::string_view tenant{};  // its name in the configuration
  std::string_view peer{};    // who is at the other end: "192.0.2.7:51234"
  // For a sink that keeps fields: more of them. Such a line is a record, and never left out.
  const LogFields* fields = nullptr;
};

// Characters that could forge lines or that a terminal obeys become '?' (base/printable.h).
void Log(LogLevel level, const LogSubject& subject, std::string_view text);
inline void Log(LogLevel level, uint64_t session, std::string_view text) {
  Log(level, LogSubject{.session = session}, text);
}
inline void Log(LogLevel level, std::string_view text) { Log(level, LogSubject{}, text); }

// Takes a line in place of standard error: `message` is the line without its time and its level.
// False: the line is written to standard error after all. Called by any thread.
using LogSink = bool (*)(LogLevel level, const LogSubject& subject, const std::string& message);
void SetLogSink(LogSink sink);  // nullptr: none

}  // namespace longwire::transport
