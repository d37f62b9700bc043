// Forwards the driver's text to the program. The driver writes device printf to the process's
// standard output, and failed asserts of kernels to standard error. The worker replaces both by
// pipes, reads them and sends the bytes to the client. Its log has a descriptor of its own
// (log_line.h).
#pragma once

#include <functional>
#include <span>
#include <thread>

#include "base/mutex.h"
#include "wire/socket.h"

namespace longwire::worker {

class TextPipes {
 public:
  // `descriptor`: the program's descriptor for the text, 1 or 2.
  using Sink = std::function<void(int descriptor, std::span<const std::byte>)>;

  ~TextPipes() { Stop(); }

  // Replaces descriptor 1 by a pipe. Called before the driver is initialised, since the driver may
  // keep the descriptor.
  bool Install();
  // Replaces descriptor 2, too; the driver's earlier text is for the log. Starts the thread that
  // keeps the pipes from filling up.
  void Start(Sink sink);
  // Sends the text that the pipes hold now.
  void Drain();
  void Stop();

 private:
  static bool Replace(int descriptor, wire::Descriptor* read_end);
  void Run();

  wire::Descriptor output_, error_;  // ends to read from
  wire::Descriptor stop_read_, stop_write_;
  // Held while a thread reads and sends, so that the bytes keep their order.
  base::Mutex mutex_;
  Sink sink_;
  std::thread thread_;
};

}  // namespace longwire::worker
