#include "link/transport/log.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <vector>

#include "base/line_limit.h"
#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/printable.h"

namespace longwire::transport {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<LogSink> g_sink{nullptr};
std::atomic<uint32_t> g_lines_per_second{0};
constexpr const char* kNames[] = {"error", "warning", "info", "debug"};

std::string MessageOf(uint64_t session, std::string_view text) {
  std::string message;
  if (session != 0) message = "session " + std::to_string(session) + ": ";
  return message + base::Printable(text);
}

// Whose lines are counted together; empty: nobody's, and they are not.
std::string SourceOf(const LogSubject& subject) {
  if (subject.session != 0) return "session " + std::to_string(subject.session);
  return std::string(subject.peer.substr(0, subject.peer.rfind(':')));
}

// What each source may still write.
class LineLimits {
 public:
  // False: the line is left out. `*notes`: lines about what was left out.
  bool Allows(const std::string& source, std::vector<std::string>* notes) {
    const double rate = g_lines_per_second.load();
    const auto now = Clock::now();
    if (rate == 0 || source.empty()) return true;
    base::MutexLock lock(mutex_);
    Review(now, notes);
    auto [entry, is_new] = sources_.try_emplace(source, rate, kBurst * rate, now);
    if (!is_new) entry->second.Change(rate, kBurst * rate);
    if (entry->second.Allows(now)) return true;
    left_out_.fetch_add(1);
    return false;
  }
  uint64_t left_out() const { return left_out_.load(); }

 private:
  using Clock = base::LineLimit::Clock;
  static constexpr double kBurst = 10;
  static constexpr size_t kSources = 1024;

  // Reports what was left out, once a second, and forgets those that are as new.
  void Review(Clock::time_point now, std::vector<std::string>* notes) LONGWIRE_REQUIRES(mutex_) {
    if (now - reviewed_ < std::chrono::seconds(1) && sources_.size() < kSources) return;
    reviewed_ = now;
    for (auto& [source, limit] : sources_) {
      const uint64_t lines = limit.TakeLeftOut();
      if (lines == 0) continue;
      notes->push_back(std::to_string(lines) + " more lines of " + base::Printable(source) +
                       " were left out");
    }
    std::erase_if(sources_, [&](auto& entry) { return entry.second.IsIdle(now); });
    // A search for each line would cost too much: they begin anew.
    if (sources_.size() >= kSources) sources_.clear();
  }

  std::atomic<uint64_t> left_out_{0};
  base::Mutex mutex_{base::ranks::kLogLimits};
  std::map<std::string, base::LineLimit> sources_ LONGWIRE_GUARDED_BY(mutex_);
  Clock::time_point reviewed_ LONGWIRE_GUARDED_BY(mutex_) = Clock::now();
};

LineLimits& Limits() {
  static auto* limits = new LineLimits;  // threads may log until the process ends
  return *limits;
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

void Write(LogLevel level, const LogSubject& subject, const std::string& message) {
  LogSink sink = g_sink.load();
  if (sink != nullptr && sink(level, subject, message)) return;
  // One write, so that lines of several threads and processes do not mix.
  const std::string line = HeadOf(level) + message + '\n';
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
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

void SetLogLimit(uint32_t lines_per_second) { g_lines_per_second.store(lines_per_second); }

uint64_t LogLinesLeftOut() { return Limits().left_out(); }

void Log(LogLevel level, const LogSubject& subject, std::string_view text) {
  if (!Logs(level)) return;
  std::vector<std::string> notes;
  const bool counted = level != LogLevel::kDebug && subject.fields == nullptr;
  const bool written = !counted || Limits().Allows(SourceOf(subject), &notes);
  for (const std::string& note : notes) Write(LogLevel::kWarning, {}, note);
  if (written) Write(level, subject, MessageOf(subject.session, text));
}

}  // namespace longwire::transport
