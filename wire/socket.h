// Local sockets between our own processes: SOCK_SEQPACKET, one message per packet, descriptors
// passed along (SCM_RIGHTS), peers known by their credentials. All descriptors are close-on-exec.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/descriptors.h"

namespace longwire::wire {

struct Message {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> descriptors;
};

inline constexpr size_t kMaxMessageBytes = 200 << 10;  // below the kernel's default send buffer
inline constexpr size_t kMaxMessageDescriptors = 64;

// Sends one packet; false if the peer is gone or the packet too large. Never raises SIGPIPE.
// `flags`: MSG_DONTWAIT or none.
bool SendMessage(int socket, std::span<const std::byte> bytes,
                 std::span<const int> descriptors = {}, int flags = 0);

// Waits up to `timeout` (negative: for ever) for one packet. nullopt on timeout, end of file, error
// or a truncated packet; *closed is true for end of file and errors, false for a timeout and where
// another thread took the packet; errno says nothing. A process without descriptors left gets the
// packet without those that came along.
std::optional<Message> ReceiveMessage(int socket, std::chrono::milliseconds timeout,
                                      bool* closed = nullptr);

// A listening socket at `path`, which replaces a stale one; a connection to one; an accepted
// connection. An invalid descriptor with errno set on failure.
Descriptor ListenLocal(const std::string& path, mode_t mode = 0600);
Descriptor ConnectLocal(const std::string& path);
// The same for a process that may not accept: gives up (EAGAIN) after `patience`, and so does each
// blocking write on the socket.
Descriptor ConnectLocal(const std::string& path, std::chrono::milliseconds patience);
Descriptor AcceptLocal(int listener);
bool LocalPair(Descriptor* one, Descriptor* other);

struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
std::optional<Credentials> PeerCredentials(int socket);
// True if `peer` is `user` or root: these users may connect to a local socket.
bool UidIsAllowed(uid_t peer, uid_t user);
// The same for the process at the other end.
bool PeerIsAllowed(int socket, uid_t user);

}  // namespace longwire::wire
