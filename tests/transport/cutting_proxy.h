// A TCP proxy on loopback that cuts all its connections when told to, as a bad network does.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "wire/socket.h"

namespace longwire::transport {

class CuttingProxy {
 public:
  explicit CuttingProxy(uint16_t target);
  ~CuttingProxy();

  uint16_t port() const { return port_; }
  // Resets every connection that exists now; how many there were.
  size_t Cut();
  // While blocked, new connections are reset at once.
  void Block(bool blocked);

 private:
  struct Pair {
    wire::Descriptor client, server;
    std::thread up, down;
    bool cut = false;
  };
  void Loop();
  static void Copy(int from, int to);

  const uint16_t target_;
  uint16_t port_ = 0;
  wire::Descriptor listener_;
  std::thread thread_;
  std::mutex mutex_;
  std::list<Pair> pairs_;  // under mutex_
  bool blocked_ = false;   // under mutex_
  bool ending_ = false;    // under mutex_
};

}  // namespace longwire::transport
