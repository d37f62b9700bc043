// The floor that any remote call stands on: a TCP ping-pong of 64 bytes on loopback between two
// processes, blocking and spinning, and the bandwidth of one connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/figures.h"

namespace {

using longwire::bench::Clock;
using longwire::bench::MedianTime;
using longwire::bench::Microseconds;
using longwire::bench::Print;

constexpr size_t kMessage = 64;              // bytes, there and back
constexpr size_t kBulk = size_t{256} << 20;  // bytes, one way
constexpr size_t kPiece = size_t{1} << 20;
constexpr int kRounds = 2000;

bool Whole(int socket, char* data, size_t bytes, bool receive, int flags) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = receive ? recv(socket, data + done, bytes - done, flags)
                        : send(socket, data + done, bytes - done, MSG_NOSIGNAL);
    if (n < 0 && flags == MSG_DONTWAIT && errno == EAGAIN) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

void NoDelay(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Echoes messages, blocking and then spinning, and swallows the bulk.
void Answer(int listener) {
  int socket = accept(listener, nullptr, nullptr);
  if (socket < 0) _exit(1);
  NoDelay(socket);
  std::vector<char> piece(kPiece);
  for (int flags : {0, static_cast<int>(MSG_DONTWAIT)}) {
    for (int i = 0; i < kRounds + 2; ++i) {
      if (!Whole(socket, piece.data(), kMessage, true, flags)) _exit(1);
      Whole(socket, piece.data(), kMessage, false, 0);
    }
  }
  for (size_t left = kBulk; left > 0; left -= kPiece) {
    if (!Whole(socket, piece.data(), kPiece, true, 0)) _exit(1);
  }
  Whole(socket, piece.data(), 1, false, 0);
  _exit(0);
}

}  // namespace

int main() {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::perror("listen on loopback");
    return 1;
  }
  if (fork() == 0) Answer(listener);
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0 || connect(socket, reinterpret_cast<sockaddr*>(&address), length) != 0) {
    std::perror("connect on loopback");
    return 1;
  }
  NoDelay(socket);
  std::vector<char> piece(kPiece, 1);
  for (int flags : {0, static_cast<int>(MSG_DONTWAIT)}) {
    double time = MedianTime(kRounds, [&] {
      Whole(socket, piece.data(), kMessage, false, 0);
      Whole(socket, piece.data(), kMessage, true, flags);
    });
    Print(flags == 0 ? "tcp_ping_pong_blocking" : "tcp_ping_pong_spinning", time, "us");
  }
  auto start = Clock::now();
  for (size_t left = kBulk; left > 0; left -= kPiece) {
    Whole(socket, piece.data(), kPiece, false, 0);
  }
  Whole(socket, piece.data(), 1, true, 0);
  Print("tcp_one_connection", static_cast<double>(kBulk) / 1e3 / Microseconds(start, Clock::now()),
        "GB/s");
  int status = 0;
  wait(&status);
  return status == 0 ? 0 : 1;
}
