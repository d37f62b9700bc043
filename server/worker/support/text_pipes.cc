#include "server/worker/support/text_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/poll_set.h"
#include "server/worker/support/crash_report.h"

namespace longwire::worker {

bool TextPipes::Replace(int descriptor, wire::Descriptor* read_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end->Reset(ends[0]);
  wire::Descriptor write_end(ends[1]);
  // A kernel can print 1 MiB (the default printf buffer) at one synchronize.
  fcntl(write_end.get(), F_SETPIPE_SZ, 1 << 20);
  fcntl(read_end->get(), F_SETFL, O_NONBLOCK);
  return dup2(write_end.get(), descriptor) == descriptor;
}

bool TextPipes::Install() {
  fflush(stdout);
  setvbuf(stdout, nullptr, _IONBF, 0);
  return Replace(STDOUT_FILENO, &output_);
}

void TextPipes::Start(Sink sink) {
  sink_ = std::move(sink);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  stop_read_.Reset(ends[0]);
  stop_write_.Reset(ends[1]);
  if (Replace(STDERR_FILENO, &error_)) ReportUnread(error_.get());
  thread_ = std::thread([this] { Run(); });
}

void TextPipes::Drain() {
  if (!sink_) return;
  base::MutexLock lock(mutex_);
  std::array<std::byte, 16 << 10> bytes;
  for (int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    int from = descriptor == STDOUT_FILENO ? output_.get() : error_.get();
    ssize_t got = 0;
    // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): O_NONBLOCK is set
    while ((got = read(from, bytes.data(), bytes.size())) > 0) {
      sink_(descriptor, std::span(bytes.data(), static_cast<size_t>(got)));
    }
  }
}

void TextPipes::Run() {
  base::PollSet set;
  set.Add(output_.get());
  set.Add(error_.get());
  base::PollSet::Entry stop = set.Add(stop_read_.get());
  while (true) {
    if (set.Wait(std::chrono::milliseconds(-1)) < 0) continue;
    if (set.Ready(stop)) return;
    Drain();
  }
}

void TextPipes::Stop() {
  stop_write_.Reset();  // the poll sees the end of file
  if (thread_.joinable()) thread_.join();
}

}  // namespace longwire::worker
