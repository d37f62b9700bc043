#include "server/warden/worker_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/printable.h"

namespace longwire::warden {
namespace {

constexpr int kPipeBytes = 16 << 10;
constexpr size_t kLongestLine = 1024;
// While lines are left out, what comes is read no faster than this.
constexpr std::chrono::milliseconds kPause{100};
// More the rest of a worker that has ended cannot be.
constexpr int kLastReads = 4;

void Write(std::string line) {
  line += '\n';
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace

wire::Descriptor WorkerLog::Open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  pipe_.Reset(ends[0]);
  fcntl(pipe_.get(), F_SETPIPE_SZ, kPipeBytes);
  return wire::Descriptor(ends[1]);
}

void WorkerLog::SetLimit(uint32_t lines_per_second) {
  const double rate = lines_per_second;
  limit_.Change(rate, std::max(kReport, 10 * rate));
}

void WorkerLog::Read(pid_t worker, Clock::time_point now) {
  std::array<char, kPipeBytes> bytes;
  const ssize_t got = read(pipe_.get(), bytes.data(), bytes.size());
  const uint64_t before = left_out_;
  if (got > 0) Take({bytes.data(), static_cast<size_t>(got)}, worker, now);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) pipe_.Reset();
  if (left_out_ != before) paused_until_ = now + kPause;
}

void WorkerLog::Take(std::string_view bytes, pid_t worker, Clock::time_point now) {
  for (size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    begun_ += bytes.substr(0, end);
    Line(begun_, worker, now);
    begun_.clear();
    bytes.remove_prefix(end + 1);
  }
  begun_ += bytes;
  if (begun_.size() <= kLongestLine) return;
  Line(begun_, worker, now);
  begun_.clear();
}

void WorkerLog::Line(std::string_view line, pid_t worker, Clock::time_point now) {
  if (!limit_.Allows(now)) {
    ++left_out_;
    return;
  }
  const std::string name = "longwire-worker[" + std::to_string(worker) + "]: ";
  const std::string text = base::Printable(line.substr(0, kLongestLine));
  Write(text.starts_with(name) ? text : name + text);
}

void WorkerLog::Finish(pid_t worker, uint64_t session, Clock::time_point now) {
  for (int i = 0; i < kLastReads && pipe_.valid(); ++i) Read(worker, now);
  if (!begun_.empty()) Line(begun_, worker, now);
  if (left_out_ == 0) return;
  std::string whose = session == 0 ? "" : " of session " + std::to_string(session);
  Write("longwire-warden: " + std::to_string(left_out_) + " more lines" + whose + " (worker " +
        std::to_string(worker) + ") were left out");
}

}  // namespace longwire::warden
