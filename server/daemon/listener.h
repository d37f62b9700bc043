// The daemon's listening sockets. It accepts connections itself and hands them to gRPC, so that it
// knows where each comes from before the first byte is read.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "link/transport/address.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Listener {
 public:
  // Takes a connection over: a non-blocking socket and where it comes from.
  using Accepted = std::function<void(wire::Descriptor socket, const std::string& from)>;

  ~Listener() { Stop(); }

  // Listens at all addresses. False with a sentence.
  bool Open(const std::vector<transport::Address>& addresses, std::string* sentence);
  // Accepts, on a thread of its own, until Stop.
  void Start(Accepted accepted);
  void Stop();

 private:
  bool OpenOne(const transport::Address& address, std::string* sentence);
  void Loop();

  std::vector<wire::Descriptor> sockets_;
  wire::Descriptor wake_;  // readable once the thread shall end
  Accepted accepted_;
  std::thread thread_;
};

}  // namespace longwire::daemon
