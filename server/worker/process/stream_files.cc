#include "server/worker/process/stream_files.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace longwire::worker {

ssize_t SendWithFile(int stream, std::span<const std::byte> bytes, int file, int flags) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &file, sizeof(file));
  ssize_t sent = -1;
  do {
    sent = sendmsg(stream, &header, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t ReceiveWithFile(int stream, std::span<std::byte> bytes, wire::Descriptor* file, int flags) {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got = -1;
  do {
    got = recvmsg(stream, &header, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  cmsghdr* rights = got < 0 ? nullptr : CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
      rights->cmsg_len == CMSG_LEN(sizeof(int))) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(rights), sizeof(descriptor));
    file->Reset(wire::AboveStandard(descriptor));
  }
  return got;
}

}  // namespace longwire::worker
