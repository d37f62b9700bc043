#include "link/transport/log.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace longwire::transport {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogSink> g_sink{nullptr};
constexpr const char* kNames[] = {"error", "warning", "info", "debug"};

// Text from a peer may contain anything: control characters could forge lines.
std::string MessageOf(uint64_t session, std::string_view text) {
  std::string message;
  if (session != 0) message = "session " + std::to_string(session) + ": ";
  for (char c : text) message += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return message;
}

// The time and the level, as a line begins.
std::string HeadOf(LogLevel level) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char head[64];
  size_t length = strftime(head, sizeof(head), "%Y-%m-%dT%H:%M:%S", &parts);
  snprintf(head + length, sizeof(head) - length, ".%03ldZ %s ", now.tv_nsec / 1'000'000,
           kNames[static_cast<int>(level)]);
  return head;
}

}  // namespace

bool ParseLogLevel(std::string_view text, LogLevel* level) {
  for (int i = 0; i < 4; ++i) {
    if (text != kNames[i]) continue;
    *level = static_cast<LogLevel>(i);
    return true;
  }
  return false;
}

void SetLogLevel(LogLevel level) { g_level.store(level); }

bool Logs(LogLevel level) { return level <= g_level.load(std::memory_order_relaxed); }

void SetLogSink(LogSink sink) { g_sink.store(sink); }

void Log(LogLevel level, const LogSubject& subject, std::string_view text) {
  if (!Logs(level)) return;
  const std::string message = MessageOf(subject.session, text);
  LogSink sink = g_sink.load();
  if (sink != nullptr && sink(level, subject, message)) return;
  // One write, so that lines of several threads and processes do not mix.
  const std::string line = HeadOf(level) + message + '\n';
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace longwire::transport
