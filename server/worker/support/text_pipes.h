// What the driver writes to the process's standard output (device printf) and standard error
// (failed asserts of kernels) is meant for the program. The worker puts pipes there, reads them and
// sends the bytes to the client. Its own log has a descriptor of its own (log_line.h).
#pragma once

#include <functional>
#include <span>
#include <thread>

#include "base/mutex.h"
#include "wire/socket.h"

namespace longwire::worker {

class TextPipes {
 public:
  // To which of the program's descriptors, 1 or 2.
  using Sink = std::function<void(int descriptor, std::span<const std::byte>)>;

  ~TextPipes() { Stop(); }

  // Puts a pipe in the place of descriptor 1. Before the driver is initialised, which may keep it.
  bool Install();
  // Puts one in the place of descriptor 2, too: what the driver said so far is for the log. Starts
  // the thread that keeps the pipes from filling up.
  void Start(Sink sink);
  // Sends what the pipes hold now.
  void Drain();
  void Stop();

 private:
  static bool Replace(int descriptor, wire::Descriptor* read_end);
  void Run();

  wire::Descriptor output_, error_;  // ends to read from
  wire::Descriptor stop_read_, stop_write_;
  // Held by the thread that reads, and sends what it read: so the bytes keep their order.
  base::Mutex mutex_;
  Sink sink_;
  std::thread thread_;
};

}  // namespace longwire::worker
