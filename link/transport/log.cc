#include "link/transport/log.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace longwire::transport {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
constexpr const char* kNames[] = {"error", "warning", "info", "debug"};

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

void Log(LogLevel level, uint64_t session, std::string_view text) {
  if (!Logs(level)) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char head[96];
  size_t length = strftime(head, sizeof(head), "%Y-%m-%dT%H:%M:%S", &parts);
  length += snprintf(head + length, sizeof(head) - length, ".%03ldZ %s ", now.tv_nsec / 1'000'000,
                     kNames[static_cast<int>(level)]);
  if (session != 0) {
    snprintf(head + length, sizeof(head) - length,
             "session %llu: ", static_cast<unsigned long long>(session));
  }
  // One write, so that lines of several threads and processes do not mix. What a peer said may
  // contain anything: control characters would forge lines.
  std::string line = head;
  for (char c : text) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  line += '\n';
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace longwire::transport
