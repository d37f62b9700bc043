// What a request after a rest stands on: one message along the processes that a call passes, and
// back, with nothing in between. Over TCP that is program, link, daemon and worker: a word of
// shared memory and a futex, a raw TCP connection, a futex again. Over the local socket it is
// program and worker. Every process sleeps until it is woken.
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <new>
#include <string>
#include <thread>

#include "bench/figures.h"

namespace {

using longwire::bench::Percentile;
using longwire::bench::Print;
using longwire::bench::TimeOf;

constexpr size_t kMessage = 64;  // bytes over TCP

// A counter that one process raises and another one sleeps for.
struct Bell {
  std::atomic<uint32_t> rung{0};
  uint32_t heard = 0;  // by the one that sleeps

  void Ring() {
    rung.fetch_add(1);
    syscall(SYS_futex, &rung, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  void Hear() {
    while (rung.load() == heard) {
      syscall(SYS_futex, &rung, FUTEX_WAIT, heard, nullptr, nullptr, 0);
    }
    ++heard;
  }
};

// Both directions of a hop between two processes of one host.
struct Hop {
  Bell there, back;
};

struct TcpPair {
  int near = -1, far = -1;
};

void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

TcpPair ConnectOnLoopback() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, generic, length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, generic, &length) != 0) {
    Fail("listen on loopback");
  }
  TcpPair pair;
  pair.near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (pair.near < 0 || connect(pair.near, generic, length) != 0) Fail("connect on loopback");
  pair.far = accept(listener, nullptr, nullptr);
  if (pair.far < 0) Fail("accept on loopback");
  close(listener);
  const int on = 1;
  for (int end : {pair.near, pair.far}) {
    setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return pair;
}

void SendOn(int socket) {
  char message[kMessage] = {};
  if (send(socket, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message)) _exit(1);
}

void ReceiveOn(int socket) {
  char message[kMessage];
  if (recv(socket, message, sizeof(message), MSG_WAITALL) != sizeof(message)) _exit(1);
}

// A process that does `turn` for ever; it ends with its parent.
pid_t Repeat(const std::function<void()>& turn) {
  const pid_t process = fork();
  if (process != 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) turn();
}

void Measure(const char* name, const std::function<void()>& request) {
  struct Rest {
    int milliseconds, repetitions;
  };
  constexpr int kFirst = 5;
  for (const Rest rest : {Rest{0, 1000}, Rest{1, 300}, Rest{10, 100}, Rest{50, 60}}) {
    std::vector<double> times;
    for (int i = 0; i < rest.repetitions + kFirst; ++i) {
      if (rest.milliseconds != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(rest.milliseconds));
      }
      double time = TimeOf(request);
      if (i >= kFirst) times.push_back(time);
    }
    const std::string row = std::string(name) + "_rest_" + std::to_string(rest.milliseconds);
    Print((row + "_p50").c_str(), Percentile(times, 0.5), "us");
    Print((row + "_p99").c_str(), Percentile(times, 0.99), "us");
  }
}

}  // namespace

int main() {
  void* memory =
      mmap(nullptr, 3 * sizeof(Hop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  Hop* hops = new (memory) Hop[3];
  Hop &local = hops[0], &to_link = hops[1], &to_worker = hops[2];
  const TcpPair wire = ConnectOnLoopback();
  std::vector<pid_t> processes;
  processes.push_back(Repeat([&] {  // the worker of a local session
    local.there.Hear();
    local.back.Ring();
  }));
  processes.push_back(Repeat([&] {  // the link
    to_link.there.Hear();
    SendOn(wire.near);
    ReceiveOn(wire.near);
    to_link.back.Ring();
  }));
  processes.push_back(Repeat([&] {  // the daemon
    ReceiveOn(wire.far);
    to_worker.there.Ring();
    to_worker.back.Hear();
    SendOn(wire.far);
  }));
  processes.push_back(Repeat([&] {  // its worker
    to_worker.there.Hear();
    to_worker.back.Ring();
  }));
  Measure("floor_unix", [&] {
    local.there.Ring();
    local.back.Hear();
  });
  Measure("floor_tcp", [&] {
    to_link.there.Ring();
    to_link.back.Hear();
  });
  for (pid_t process : processes) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  return 0;
}
