#include "link/certificates/tcp_listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>

#include "base/reason.h"

namespace longwire::transport {
namespace {

// Most likely out of descriptors: wait instead of spinning.
constexpr useconds_t kPauseMicroseconds = 10'000;

wire::Descriptor ListenAt(const addrinfo& way, int backlog) {
  wire::Descriptor listener(socket(way.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return listener;
  int on = 1;
  // A restarted process gets its port back although connections of the last one are still closing.
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Accepted sockets inherit it.
  setsockopt(listener.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (bind(listener.get(), way.ai_addr, way.ai_addrlen) != 0 ||
      listen(listener.get(), backlog) != 0) {
    listener.Reset();
  }
  return listener;
}

}  // namespace

Address AddressOf(const sockaddr_storage& storage) {
  Address address;
  char text[INET6_ADDRSTRLEN] = "";
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  address.port = ntohs(storage.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
  address.host = text;
  return address;
}

Address BoundAddress(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length);
  return AddressOf(storage);
}

std::vector<wire::Descriptor> ListenTcp(const Address& address, int backlog,
                                        const std::string& program, std::string* sentence) {
  std::vector<wire::Descriptor> sockets;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  std::string port = std::to_string(address.port);
  int unknown = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (unknown != 0) {
    *sentence = "cannot listen at " + address.Text() + ": " + gai_strerror(unknown);
    return sockets;
  }
  int error = 0;
  for (const addrinfo* way = found; way != nullptr; way = way->ai_next) {
    wire::Descriptor listener = ListenAt(*way, backlog);
    if (listener.valid()) {
      sockets.push_back(std::move(listener));
      continue;
    }
    error = errno;
    // A name may stand for an address that this host lacks; a port that is taken is a mistake.
    if (error != EADDRINUSE) continue;
    sockets.clear();
    break;
  }
  freeaddrinfo(found);
  if (!sockets.empty()) return sockets;
  *sentence = "cannot listen at " + address.Text() + ": " + base::Reason(error) +
              (error == EADDRINUSE ? "; is another " + program + " running there?" : "");
  return sockets;
}

wire::Descriptor AcceptTcp(int listener, sockaddr_storage* from) {
  socklen_t length = sizeof(*from);
  wire::Descriptor socket(
      accept4(listener, reinterpret_cast<sockaddr*>(from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) return socket;
  const int error = errno;
  const bool gone = error == EAGAIN || error == ECONNABORTED || error == EINTR;
  if (!gone) usleep(kPauseMicroseconds);
  errno = gone ? 0 : error;
  return socket;
}

}  // namespace longwire::transport
