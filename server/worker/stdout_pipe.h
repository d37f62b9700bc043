// Device printf goes to the process's standard output. The worker makes that a pipe, reads it and
// sends the bytes to the client as text.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <thread>

#include "wire/socket.h"

namespace longwire::worker {

class StdoutPipe {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  ~StdoutPipe() { Stop(); }

  // Puts a pipe in the place of descriptor 1. Before the driver is initialised.
  bool Install();
  // Starts the thread that keeps the pipe from filling up.
  void Start(Sink sink);
  // Sends what the pipe holds now.
  void Drain();
  void Stop();

 private:
  void Run();

  wire::Descriptor read_end_;
  wire::Descriptor stop_read_, stop_write_;
  std::mutex mutex_;  // whoever reads, so that the bytes keep their order
  Sink sink_;
  std::thread thread_;
};

}  // namespace longwire::worker
