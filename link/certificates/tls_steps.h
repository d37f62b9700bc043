// OpenSSL's steps over a socket that does not wait: a handshake, a read, a write.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <chrono>

#include "link/certificates/tcp.h"

namespace longwire::transport {

// Repeats the step, which returns what OpenSSL does, until it has succeeded or failed. False, too,
// with *timed_out, when the socket is not ready before the deadline.
template <class Step>
bool DriveTls(SSL* ssl, int socket, std::chrono::steady_clock::time_point deadline, Step step,
              bool* timed_out) {
  while (true) {
    ERR_clear_error();
    int result = step();
    if (result > 0) return true;
    int error = SSL_get_error(ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return false;
    short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    *timed_out = !AwaitSocket(socket, events, deadline);
    if (*timed_out) return false;
  }
}

}  // namespace longwire::transport
