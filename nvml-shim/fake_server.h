// A server's local socket for tests: answers requests about devices with a reply that the test
// sets.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "wire/socket.h"
#include "wire/view.h"

namespace longwire::nvml {

class FakeServer {
 public:
  FakeServer() {
    char folder[] = "/tmp/longwire-nvml-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/door";
    listener_ = wire::ListenLocal(path_);
    thread_ = std::thread([this] { Loop(); });
    setenv("LONGWIRE_SERVER", ("unix:" + path_).c_str(), 1);
  }
  ~FakeServer() {
    Close();
    rmdir(folder_.c_str());
    unsetenv("LONGWIRE_SERVER");
  }

  void SetReply(wire::ViewReply reply) {
    base::MutexLock lock(mutex_);
    reply_ = std::move(reply);
  }
  bool WasAskedBy(pid_t pid) {
    base::MutexLock lock(mutex_);
    return askers_.count(static_cast<uint32_t>(pid)) != 0;
  }
  // Stops answering.
  void Close() {
    if (!thread_.joinable()) return;
    ending_ = true;
    wire::ConnectLocal(path_);
    thread_.join();
    listener_.Reset();
    unlink(path_.c_str());
  }

 private:
  void Loop() {
    while (true) {
      wire::Descriptor socket = wire::AcceptLocal(listener_.get());
      if (ending_) return;
      auto message = wire::ReceiveMessage(socket.get(), std::chrono::seconds(5));
      if (!message) continue;
      wire::Reader reader(message->bytes);
      wire::Writer writer;
      wire::ViewRequest request;
      if (request.Decode(reader) != wire::WireResult::kOk) continue;
      base::MutexLock lock(mutex_);
      askers_.insert(request.pid);
      reply_.Encode(writer);
      wire::SendMessage(socket.get(), writer.span());
    }
  }

  std::string folder_, path_;
  wire::Descriptor listener_;
  std::thread thread_;
  std::atomic<bool> ending_{false};
  base::Mutex mutex_;
  wire::ViewReply reply_ LONGWIRE_GUARDED_BY(mutex_);
  std::set<uint32_t> askers_ LONGWIRE_GUARDED_BY(mutex_);
};

}  // namespace longwire::nvml
