#include "client-shim/entry/error_log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/descriptors.h"

namespace longwire::shim {
namespace {

constexpr size_t kMaxText = 1000;  // bytes of a message
constexpr const char* kLost = "[older messages are not kept]\n";

struct Callback {
  CUlogsCallback function = nullptr;
  void* data = nullptr;
  uint64_t number = 0;
};

struct ErrorLog {
  base::Mutex mutex{base::ranks::kErrorLog};
  std::deque<std::string> messages LONGWIRE_GUARDED_BY(mutex);  // each with its newline
  size_t bytes LONGWIRE_GUARDED_BY(mutex) = 0;
  CUlogIterator next LONGWIRE_GUARDED_BY(mutex) = 1;  // number of the next message
  std::vector<Callback> callbacks LONGWIRE_GUARDED_BY(mutex);
  uint64_t next_callback LONGWIRE_GUARDED_BY(mutex) = 1;
  std::string lack LONGWIRE_GUARDED_BY(mutex);  // why the server refused memory last
};

ErrorLog& TheErrorLog() {
  static NeverDestroyed<ErrorLog> log;
  return *log;
}

// -1: nobody asked for one, or the program has closed it.
int LogFile() {
  const char* path = base::Environment("CUDA_LOG_FILE");
  if (path == nullptr || path[0] == '\0') return -1;
  if (path == std::string_view("stdout")) return STDOUT_FILENO;
  if (path == std::string_view("stderr")) return STDERR_FILENO;
  static NeverDestroyed<wire::OwnDescriptor> file{
      wire::OwnDescriptor(wire::OpenFile(path, O_WRONLY | O_CREAT | O_APPEND))};
  return file->get();
}

std::string WithPrefix(const std::string& text) {
  char head[64];
  timespec now{};
  tm parts{};
  clock_gettime(CLOCK_REALTIME, &now);
  localtime_r(&now.tv_sec, &parts);
  std::snprintf(head, sizeof head, "[%02d:%02d:%02d.%03ld][%ld][CUDA][E] ", parts.tm_hour,
                parts.tm_min, parts.tm_sec, now.tv_nsec / 1000000, syscall(SYS_gettid));
  std::string message = head + text.substr(0, kMaxText);
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message + "\n";
}

// Returns the callbacks that are to be called with it.
std::vector<Callback> Keep(const std::string& message) {
  if (LogFile() >= 0) {
    ssize_t ignored = write(LogFile(), message.data(), message.size());
    (void)ignored;
  }
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  log.messages.push_back(message);
  log.bytes += message.size();
  ++log.next;
  for (; log.bytes > kLogBytes; log.messages.pop_front()) {
    log.bytes -= log.messages.front().size();
  }
  return log.callbacks;
}

}  // namespace

void LogError(const std::string& text) {
  std::string message = WithPrefix(text);
  for (const Callback& callback : Keep(message)) {
    callback.function(callback.data, CU_LOG_LEVEL_ERROR, message.data(), message.size());
  }
}

void LogErrorQuietly(const std::string& text) { Keep(WithPrefix(text)); }

void SetLackReason(const std::string& text) {
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  log.lack = text.substr(0, kMaxText);
}

std::string TakeLackReason() {
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  return std::exchange(log.lack, {});
}

CUresult AddLogCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* handle) {
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  uint64_t number = log.next_callback++;
  log.callbacks.push_back({callback, data, number});
  if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(number);
  return CUDA_SUCCESS;
}

CUresult RemoveLogCallback(CUlogsCallbackHandle handle) {
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  auto number = reinterpret_cast<uint64_t>(handle);
  size_t removed = std::erase_if(
      log.callbacks, [&](const Callback& callback) { return callback.number == number; });
  return removed != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUlogIterator NextLogMessage() {
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  return log.next;
}

std::string CollectLog(CUlogIterator* iterator) {
  ErrorLog& log = TheErrorLog();
  base::MutexLock lock(log.mutex);
  CUlogIterator oldest = log.next - static_cast<CUlogIterator>(log.messages.size());
  CUlogIterator from = iterator != nullptr ? std::min(*iterator, log.next) : oldest;
  std::string text = from < oldest ? kLost : "";
  for (CUlogIterator i = std::max(from, oldest); i < log.next; ++i) {
    text += log.messages[i - oldest];
  }
  if (iterator != nullptr) *iterator = log.next;
  return text;
}

}  // namespace longwire::shim
