// Two processes of one test program: forked before CUDA is used, talking over a socket pair that
// also carries descriptors.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "check.h"

struct Peer {
  int socket = -1;
  pid_t child = -1;  // 0 in the child

  template <class T>
  void Send(const T& value) {
    EXPECT(write(socket, &value, sizeof value) == sizeof value, "the other process is gone");
  }
  template <class T>
  T Receive() {
    T value;
    EXPECT(recv(socket, &value, sizeof value, MSG_WAITALL) == sizeof value,
           "the other process is gone");
    return value;
  }
  void SendDescriptor(int descriptor) {
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
    iovec data = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    EXPECT(sendmsg(socket, &message, 0) == 1, "sendmsg");
  }
  int ReceiveDescriptor() {
    char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
    iovec data = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    EXPECT(recvmsg(socket, &message, 0) == 1, "recvmsg");
    int descriptor = -1;
    EXPECT(CMSG_FIRSTHDR(&message) != nullptr, "no descriptor came");
    std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
  }
};

inline Peer Fork() {
  int ends[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  Peer peer;
  peer.child = fork();
  peer.socket = ends[peer.child == 0 ? 1 : 0];
  close(ends[peer.child == 0 ? 0 : 1]);
  return peer;
}

// In the parent: the child ended well.
inline void Join(const Peer& peer) {
  int status = 0;
  EXPECT(waitpid(peer.child, &status, 0) == peer.child && WIFEXITED(status) &&
             WEXITSTATUS(status) == 0,
         "the child ended with status %x", status);
}
