#include "link/certificates/tcp.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/poll_set.h"

namespace longwire::transport {

using Clock = std::chrono::steady_clock;

bool AwaitSocket(int socket, short events, Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return left.count() > 0 && base::PollOne(socket, events, left) != 0;
}

wire::Descriptor ConnectTcp(const Address& server, Clock::time_point deadline, int* reason) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::string port = std::to_string(server.port);
  if (getaddrinfo(server.host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  wire::Descriptor connected;
  for (addrinfo* way = found; way != nullptr && !connected.valid(); way = way->ai_next) {
    connected.Reset(socket(way->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (connect(connected.get(), way->ai_addr, way->ai_addrlen) == 0) break;
    int error = errno;
    socklen_t length = sizeof(error);
    if (error == EINPROGRESS && AwaitSocket(connected.get(), POLLOUT, deadline)) {
      getsockopt(connected.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) connected.Reset();
    if (reason != nullptr) *reason = error;
  }
  freeaddrinfo(found);
  return connected;
}

}  // namespace longwire::transport
