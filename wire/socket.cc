#include "wire/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/poll_set.h"
#include "wire/descriptors.h"
#include "wire/guards.h"

namespace longwire::wire {
namespace {

// False when the path does not fit into a socket address.
bool FillAddress(const std::string& path, sockaddr_un* address) {
  std::memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof(address->sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address->sun_path, path.data(), path.size());
  return true;
}

Descriptor NewSocket() {
  return Descriptor(AboveStandard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
}

void TakeDescriptors(msghdr* header, std::vector<Descriptor>* descriptors) {
  for (cmsghdr* c = CMSG_FIRSTHDR(header); c != nullptr; c = CMSG_NXTHDR(header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int value = -1;
      std::memcpy(&value, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      descriptors->emplace_back(AboveStandard(value));
    }
  }
}

}  // namespace

bool SendMessage(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors,
                 int flags) {
  if (bytes.size() > kMaxMessageBytes || descriptors.size() > kMaxMessageDescriptors) {
    errno = EMSGSIZE;
    return false;
  }
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageDescriptors * sizeof(int))] = {};
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<Message> ReceiveMessage(int socket, std::chrono::milliseconds timeout, bool* closed) {
  if (closed != nullptr) *closed = false;
  if (base::PollOne(socket, POLLIN, timeout) == 0) return std::nullopt;

  Message message;
  message.bytes.resize(kMaxMessageBytes);
  iovec part{message.bytes.data(), message.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t received = -1;
  // A peer that closes without reading our last packets resets the connection. The error is
  // reported once, ahead of the peer's last packets, which are still in the queue.
  do {
    received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || errno == ECONNRESET));
  // Somebody else has taken the packet. (After the end of file errno is an earlier call's.)
  if (received < 0 && errno == EAGAIN) return std::nullopt;
  // Also those of an empty packet, or they would stay open.
  if (received >= 0) TakeDescriptors(&header, &message.descriptors);
  // Without descriptors left here, those of the message are lost, not the connection: who expects
  // some sees that they are missing (lost_descriptors.h).
  bool lost = (header.msg_flags & MSG_CTRUNC) != 0;
  for (const Descriptor& one : message.descriptors) lost |= !one.valid();
  if (lost) {
    message.descriptors.clear();
    message.descriptors.emplace_back();
  }
  if (received <= 0 || (header.msg_flags & MSG_TRUNC) != 0) {
    if (closed != nullptr) *closed = true;
    return std::nullopt;
  }
  message.bytes.resize(static_cast<size_t>(received));
  return message;
}

Descriptor ListenLocal(const std::string& path, mode_t mode) {
  sockaddr_un address;
  Descriptor listener = NewSocket();
  if (!listener.valid() || !FillAddress(path, &address)) return Descriptor();
  // A socket file that nobody answers at is what a dead process left behind.
  if (!ConnectLocal(path).valid() && errno == ECONNREFUSED) unlink(path.c_str());
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(listener.get(), 128) != 0) {
    return Descriptor();
  }
  return listener;
}

Descriptor ConnectLocal(const std::string& path) {
  return ConnectLocal(path, std::chrono::milliseconds(0));
}

Descriptor ConnectLocal(const std::string& path, std::chrono::milliseconds patience) {
  sockaddr_un address;
  Descriptor connection = NewSocket();
  if (!connection.valid() || !FillAddress(path, &address)) return Descriptor();
  timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};  // 0: none
  setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    int error = errno;
    connection.Reset();
    errno = error;
  }
  return connection;
}

Descriptor AcceptLocal(int listener) {
  return Descriptor(AboveStandard(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)));
}

bool LocalPair(Descriptor* one, Descriptor* other) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  one->Reset(AboveStandard(pair[0]));
  other->Reset(AboveStandard(pair[1]));
  return one->valid() && other->valid();
}

std::optional<Credentials> PeerCredentials(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return Credentials{peer.pid, peer.uid, peer.gid};
}

bool UidIsAllowed(uid_t peer, uid_t user) {
  static const bool checks = !GuardIsOff("peer");
  return peer == user || peer == 0 || !checks;
}

bool PeerIsAllowed(int socket, uid_t user) {
  auto peer = PeerCredentials(socket);
  return peer && UidIsAllowed(peer->uid, user);
}

}  // namespace longwire::wire
