#include "server/worker/stdout_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace longwire::worker {

bool StdoutPipe::Install() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end_.Reset(ends[0]);
  wire::Descriptor write_end(ends[1]);
  // A kernel can print 1 MiB (the default printf buffer) at one synchronize.
  fcntl(write_end.get(), F_SETPIPE_SZ, 1 << 20);
  fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  fflush(stdout);
  setvbuf(stdout, nullptr, _IONBF, 0);
  return dup2(write_end.get(), STDOUT_FILENO) == STDOUT_FILENO;
}

void StdoutPipe::Start(Sink sink) {
  sink_ = std::move(sink);
  int ends[2];
  if (!read_end_.valid() || pipe2(ends, O_CLOEXEC) != 0) return;
  stop_read_.Reset(ends[0]);
  stop_write_.Reset(ends[1]);
  thread_ = std::thread([this] { Run(); });
}

void StdoutPipe::Drain() {
  if (!read_end_.valid() || !sink_) return;
  std::lock_guard lock(mutex_);
  std::array<std::byte, 16 << 10> bytes;
  ssize_t got = 0;
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): O_NONBLOCK is set
  while ((got = read(read_end_.get(), bytes.data(), bytes.size())) > 0) {
    sink_(std::span(bytes.data(), static_cast<size_t>(got)));
  }
}

void StdoutPipe::Run() {
  while (true) {
    pollfd wait[2] = {{read_end_.get(), POLLIN, 0}, {stop_read_.get(), POLLIN, 0}};
    if (poll(wait, 2, -1) < 0) continue;
    if (wait[1].revents != 0) return;
    Drain();
  }
}

void StdoutPipe::Stop() {
  stop_write_.Reset();  // the poll sees the end of file
  if (thread_.joinable()) thread_.join();
}

}  // namespace longwire::worker
