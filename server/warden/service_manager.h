// The service manager's (systemd's) notification protocol (sd_notify(3)) and socket activation
// (sd_listen_fds(3)), without its library.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "wire/socket.h"

namespace longwire::service {

class Manager {
 public:
  // Removes the manager's variables from the environment, so that children do not see them.
  static Manager FromEnvironment();
  // This process's manager, read on first use.
  static Manager& Ours();

  // True if a service manager wants notifications.
  bool present() const { return !notify_path_.empty(); }
  // The interval in which WATCHDOG=1 has to be sent; zero: no watchdog.
  std::chrono::microseconds watchdog() const { return watchdog_; }
  // The listening socket that was opened for this process, once; invalid when there is none.
  wire::Descriptor TakeSocket() { return std::move(socket_); }

  // Sends one message of NAME=value lines, such as "READY=1\nSTATUS=serving". False when there is
  // no manager or it cannot be reached; callers may ignore that.
  bool Notify(std::string_view lines) const;

 private:
  std::string notify_path_;
  std::chrono::microseconds watchdog_{0};
  wire::Descriptor socket_;
};

// The line that RELOADING=1 requires: the time since the machine started.
std::string MonotonicLine();

// The path at which a unix socket listens; empty when it has none.
std::string PathOf(const wire::Descriptor& socket);

}  // namespace longwire::service
