#include "client-shim/tracing/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "base/json.h"
#include "base/reason.h"

namespace longwire::shim {
namespace {

constexpr size_t kWritten = 256 << 10;  // bytes at once
constexpr uint64_t kForTheEnd = 4096;   // of the limit, for what says that it was reached

// An empty file that no other process writes.
wire::Descriptor OpenEmpty(const std::string& path) {
  wire::Descriptor file = wire::OpenFile(path.c_str(), O_WRONLY | O_CREAT | O_NOCTTY);
  struct stat what {};
  if (!file.valid()) return {};
  const bool ours = flock(file.get(), LOCK_EX | LOCK_NB) == 0 && fstat(file.get(), &what) == 0;
  if (ours && what.st_size == 0) return file;
  errno = EEXIST;
  return {};
}

std::string Number(uint64_t number) { return std::to_string(number); }

}  // namespace

bool TraceFile::Open(const std::string& path, uint64_t limit, std::string* sentence) {
  path_ = path;
  limit_ = limit;
  wire::Descriptor file = OpenEmpty(path_);
  if (!file.valid() && errno == EEXIST) {
    path_ = path + "." + std::to_string(getpid());
    file = OpenEmpty(path_);
  }
  if (!file.valid()) {
    *sentence = "no trace is written: " + path_ + " cannot be opened (" + base::Reason(errno) +
                "); name a file in a folder where you may write";
    return false;
  }
  file_ = wire::OwnDescriptor(std::move(file));
  text_ = "[";
  return true;
}

std::string TraceFile::Time(uint64_t at) const {
  const uint64_t since = at > start_ ? at - start_ : 0;
  char text[40];
  std::snprintf(text, sizeof(text), "%" PRIu64 ".%03u", since / 1000,
                static_cast<unsigned>(since % 1000));
  return text;
}

void TraceFile::Line(const std::string& object) {
  if (full_) return;
  if (bytes_ + text_.size() + object.size() + kForTheEnd > limit_) {
    problem_ = "the trace in " + path_ + " ends early: it has reached " + Number(limit_) +
               " bytes; longwire trace --limit allows more";
    text_ += lines_++ == 0 ? "\n" : ",\n";
    text_ +=
        R"({"ph":"i","s":"g","pid":1,"tid":0,"ts":0,"name":)" + base::JsonString(problem_) + "}";
    full_ = true;
    return;
  }
  text_ += lines_++ == 0 ? "\n" : ",\n";
  text_ += object;
  if (text_.size() >= kWritten) Flush();
}

void TraceFile::Lines(const std::string& one, const std::string& other) {
  Line(one + ",\n" + other);
}

void TraceFile::Span(uint32_t part, uint64_t track, std::string_view name, uint64_t began,
                     uint64_t ended, std::string_view arguments) {
  // The end as the file has the beginning: spans that touch do not overlap by what was cut off.
  std::string line = R"({"ph":"X","pid":)" + Number(part) + R"(,"tid":)" + Number(track) +
                     R"(,"ts":)" + Time(began) + R"(,"dur":)" +
                     Time(start_ + (ended > began ? ended - began : 0)) + R"(,"name":)" +
                     base::JsonString(name);
  if (!arguments.empty()) line.append(R"(,"args":{)").append(arguments).append("}");
  Line(line + "}");
}

void TraceFile::WayPart(uint64_t call, std::string_view name, uint64_t began, uint64_t ended) {
  const std::string rest = R"(,"pid":2,"tid":0,"cat":"way","id":)" + Number(call) + R"(,"name":)" +
                           base::JsonString(name) + "}";
  Lines(R"({"ph":"b","ts":)" + Time(began) + rest, R"({"ph":"e","ts":)" + Time(ended) + rest);
}

void TraceFile::Flow(uint64_t call, const Place& from, const Place& to) {
  auto rest = [&](const Place& place) {
    return R"(,"cat":"issue","name":"issue","id":)" + Number(call) + R"(,"pid":)" +
           Number(place.part) + R"(,"tid":)" + Number(place.track) + R"(,"ts":)" + Time(place.at) +
           "}";
  };
  Lines(R"({"ph":"s")" + rest(from), R"({"ph":"f","bp":"e")" + rest(to));
}

void TraceFile::Counter(uint32_t part, std::string_view name, uint64_t at,
                        std::string_view arguments) {
  Line(R"({"ph":"C","pid":)" + Number(part) + R"(,"ts":)" + Time(at) + R"(,"name":)" +
       base::JsonString(name) + R"(,"args":{)" + std::string(arguments) + "}}");
}

void TraceFile::Mark(std::string_view name, uint64_t at, std::string_view arguments) {
  Line(R"({"ph":"i","s":"p","pid":2,"tid":0,"ts":)" + Time(at) + R"(,"name":)" +
       base::JsonString(name) + R"(,"args":{)" + std::string(arguments) + "}}");
}

void TraceFile::NamePart(uint32_t part, std::string_view name) {
  Line(R"({"ph":"M","pid":)" + Number(part) + R"(,"name":"process_name","args":{"name":)" +
       base::JsonString(name) + "}}");
  Line(R"({"ph":"M","pid":)" + Number(part) +
       R"(,"name":"process_sort_index","args":{"sort_index":)" + Number(part) + "}}");
}

void TraceFile::NameTrack(uint32_t part, uint64_t track, std::string_view name) {
  Line(R"({"ph":"M","pid":)" + Number(part) + R"(,"tid":)" + Number(track) +
       R"(,"name":"thread_name","args":{"name":)" + base::JsonString(name) + "}}");
}

std::string TraceFile::TakeProblem() { return std::exchange(problem_, {}); }

void TraceFile::Flush() {
  std::string_view left = text_;
  while (!left.empty() && !closed_) {
    errno = EBADF;  // the program has closed it
    const int file = file_.get();
    ssize_t written = file < 0 ? -1 : write(file, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      problem_ = "the trace in " + path_ + " ends early: " + base::Reason(errno);
      full_ = closed_ = true;
      break;
    }
    bytes_ += static_cast<uint64_t>(written);
    left.remove_prefix(static_cast<size_t>(written));
  }
  text_.clear();
}

void TraceFile::Close() {
  text_ += "\n]\n";
  Flush();
  closed_ = true;
  file_ = {};
}

}  // namespace longwire::shim
