// A long or a narrow wire on loopback: passes TCP connections on, delays every byte and limits how
// many pass in a second, which machines without a network emulator in their kernel cannot do.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

namespace longwire::bench {

class RelayDirection;

struct WireShape {
  std::chrono::nanoseconds one_way{0};  // each byte leaves at least so long after it came
  double bytes_per_second = 0;          // of all connections together, each way; 0: unlimited
};

// Accepts on 127.0.0.1 and connects each connection on to a port of 127.0.0.1. Two threads move the
// bytes, one for each direction. A thread that has moved some spins for a moment before it sleeps,
// and polls the clock for the last part of a delay, so that delays are exact within some
// microseconds while there are processors.
class Relay {
 public:
  Relay(uint16_t target, WireShape shape);
  // Cuts what is still open.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Starts; false with errno set. `port` 0: a free one.
  bool Start(uint16_t port);
  uint16_t port() const { return port_; }

 private:
  void Accept();

  const uint16_t target_;
  uint16_t port_ = 0;
  int listener_ = -1;
  std::unique_ptr<RelayDirection> up_, down_;
  std::thread accepting_;
};

}  // namespace longwire::bench
