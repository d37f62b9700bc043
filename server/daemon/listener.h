// The daemon's listening sockets. It accepts connections itself and hands them to gRPC, so that it
// knows where each comes from before the first byte is read.
#pragma once

#include <chrono>
#include <functional>
#include <list>
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
  // Accepts, on a thread of its own, until Stop. Of a connection without TLS the first byte is
  // awaited: a client that begins with TLS is refused, and the log says so.
  enum class Speech { kTls, kPlain };
  void Start(Speech speech, Accepted accepted);
  void Stop();

 private:
  // A connection that has not said anything yet.
  struct Arrival {
    wire::Descriptor socket;
    std::string from;
    std::chrono::steady_clock::time_point deadline;
  };
  bool OpenOne(const transport::Address& address, std::string* sentence);
  void Loop();
  void Accept(int listener);
  // False when it has still not said anything.
  bool Greet(Arrival& arrival, bool readable);

  std::vector<wire::Descriptor> sockets_;
  wire::Descriptor wake_;  // readable once the thread shall end
  Speech speech_ = Speech::kTls;
  Accepted accepted_;
  std::list<Arrival> arrivals_;
  std::thread thread_;
};

}  // namespace longwire::daemon
