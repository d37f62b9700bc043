// The warden's end of longwire-starter, which starts workers behind walls (server/starter).
//
// A worker's settings are a sealed file in memory: the worker's options, each followed by a zero
// byte, one zero byte, then its variables in the same form. The starter passes it on unread.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "server/protocol/starter.h"
#include "server/warden/spawn.h"
#include "wire/socket.h"

namespace longwire::warden {

class StarterClient {
 public:
  struct End {
    pid_t worker = 0;
    int exit_code = 0;
    int signal = 0;
  };

  // Starts `program`, or connects to the socket if that is given, and waits for the first answer.
  bool Start(const Program& program, std::string* sentence);
  bool Connect(const std::string& socket, std::string* sentence);
  bool running() const { return socket_.valid(); }
  bool has(starter::Wall wall) const { return (walls_ & wall) != 0; }
  int socket() const { return socket_.get(); }

  // pid 0 if it cannot be started. `program` without its path; its descriptors begin with the log
  // and the settings, which are made here.
  Process StartWorker(Program program);
  void Kill(pid_t worker);
  void Assign(pid_t worker, const std::string& tenant, bool latency_critical);
  // The ends that have arrived. Afterwards the starter may no longer be running.
  std::vector<End> TakeEnds();
  // Some arrived while another answer was awaited: the socket says nothing of them any more.
  bool has_ends() const { return !ends_.empty(); }

 private:
  void TakeEnd(const starter::Answer& answer);
  bool AwaitReady(std::string* sentence);
  bool Send(const starter::Request& request, std::span<const int> descriptors = {});
  // The next answer; false if none comes in time.
  bool Receive(std::chrono::milliseconds patience, starter::Answer* answer,
               wire::Descriptor* passed);

  wire::Descriptor socket_;
  Process process_;  // pid 0: the service manager's
  uint32_t walls_ = 0;
  std::vector<End> ends_;
};

}  // namespace longwire::warden
