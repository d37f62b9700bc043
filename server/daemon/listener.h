// The daemon's listening sockets. The daemon accepts connections itself and passes them to gRPC, so
// that it knows the peer's address before the first byte is read.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "base/poll_set.h"
#include "link/certificates/address.h"
#include "server/admission/connections.h"
#include "wire/socket.h"

namespace longwire::daemon {

class Listener {
 public:
  // Takes ownership of a connection: a non-blocking socket and the peer's address.
  using Accepted = std::function<void(wire::Descriptor socket, const std::string& from)>;

  ~Listener() { Stop(); }

  // Listens at all addresses. False with a sentence.
  bool Open(const std::vector<transport::Address>& addresses, std::string* sentence);
  // Accepts on a thread of its own until Stop. It waits for the first byte of each connection
  // before it hands it on; with kPlain that shows a client that speaks TLS, which is refused.
  enum class Speech { kTls, kPlain };
  // `connections` counts them all, and outlives the listener.
  void Start(Speech speech, admission::Connections& connections, Accepted accepted);
  // A connection may have lost its session.
  void Wake();
  void Stop();

 private:
  // A connection without a first byte yet.
  struct Arrival {
    wire::Descriptor socket;
    std::string from;
    std::chrono::steady_clock::time_point deadline;
    base::PollSet::Entry first_byte;  // of this pass; none: accepted in it
  };
  void Loop();
  void Accept(int listener);
  // How long the next wait may last.
  std::chrono::milliseconds TimeToWait();
  // False while the first byte is missing.
  bool Greet(Arrival& arrival, bool readable);

  std::vector<wire::Descriptor> sockets_;
  wire::Descriptor wake_;  // readable after Wake and Stop
  std::atomic<bool> stopping_{false};
  admission::Connections* connections_ = nullptr;
  std::chrono::steady_clock::time_point next_sweep_{};  // of them
  Speech speech_ = Speech::kTls;
  Accepted accepted_;
  std::list<Arrival> arrivals_;
  int accept_error_ = 0;  // why the last connection could not be accepted
  std::thread thread_;
};

}  // namespace longwire::daemon
