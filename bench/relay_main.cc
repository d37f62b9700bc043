// relay --to PORT [--listen PORT] [--rtt MICROSECONDS] [--gbit N]
//
// Forwards connections to a port of this host, as if over a network with that round-trip time and
// N Gbit/s in each direction. Prints the port that it listens on, and ends when its standard input
// does.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/relay.h"

namespace {

int Usage() {
  std::fputs("relay --to PORT [--listen PORT] [--rtt MICROSECONDS] [--gbit N]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint16_t to = 0, listen = 0;
  longwire::bench::WireShape shape;
  for (int i = 1; i < argc; i += 2) {
    char* end = nullptr;
    double value = i + 1 < argc ? std::strtod(argv[i + 1], &end) : -1;
    if (value < 0 || end == argv[i + 1] || *end != '\0') return Usage();
    if (std::strcmp(argv[i], "--to") == 0) {
      to = static_cast<uint16_t>(value);
    } else if (std::strcmp(argv[i], "--listen") == 0) {
      listen = static_cast<uint16_t>(value);
    } else if (std::strcmp(argv[i], "--rtt") == 0) {
      shape.one_way = std::chrono::nanoseconds(static_cast<int64_t>(value * 500));
    } else if (std::strcmp(argv[i], "--gbit") == 0) {
      shape.bytes_per_second = value * 1e9 / 8;
    } else {
      return Usage();
    }
  }
  if (to == 0) return Usage();
  longwire::bench::Relay relay(to, shape);
  if (!relay.Start(listen)) {
    std::perror("relay: cannot listen");
    return 1;
  }
  std::printf("%u\n", relay.port());
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
