// What a service manager (systemd) wants to hear of a service and hands to it: its notification
// protocol (sd_notify(3)) and its sockets (sd_listen_fds(3)), spoken without its library.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "wire/socket.h"

namespace longwire::service {

class Manager {
 public:
  // Takes the manager's variables out of the environment, so that no child takes them for its own.
  static Manager FromEnvironment();
  // This process's, read when first asked.
  static Manager& Ours();

  // Whether somebody waits to hear of us.
  bool present() const { return !notify_path_.empty(); }
  // How often WATCHDOG=1 has to be heard at the latest; zero: nobody listens for it.
  std::chrono::microseconds watchdog() const { return watchdog_; }
  // The listening socket that was opened for this process, once; invalid when there is none.
  wire::Descriptor TakeSocket() { return std::move(socket_); }

  // Sends one message of NAME=value lines, such as "READY=1\nSTATUS=serving". False when there is
  // no manager or it cannot be reached; nobody has to care.
  bool Notify(std::string_view lines) const;

 private:
  std::string notify_path_;
  std::chrono::microseconds watchdog_{0};
  wire::Descriptor socket_;
};

// The line that has to stand beside RELOADING=1: the time since the machine started.
std::string MonotonicLine();

// The path at which a unix socket listens; empty when it has none.
std::string PathOf(const wire::Descriptor& socket);

}  // namespace longwire::service
