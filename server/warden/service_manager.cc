#include "server/warden/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace longwire::service {
namespace {

constexpr int kFirstSocket = 3;

std::string Take(const char* variable) {
  const char* text = getenv(variable);
  std::string value = text == nullptr ? "" : text;
  unsetenv(variable);
  return value;
}

uint64_t Number(const std::string& text) { return strtoull(text.c_str(), nullptr, 10); }

}  // namespace

Manager Manager::FromEnvironment() {
  Manager manager;
  const std::string self = std::to_string(getpid());
  manager.notify_path_ = Take("NOTIFY_SOCKET");
  uint64_t watchdog = Number(Take("WATCHDOG_USEC"));
  std::string watched = Take("WATCHDOG_PID");
  if (manager.present() && (watched.empty() || watched == self)) {
    manager.watchdog_ = std::chrono::microseconds(watchdog);
  }
  bool sockets_are_ours = Take("LISTEN_PID") == self;
  if (Number(Take("LISTEN_FDS")) != 0 && sockets_are_ours) {
    fcntl(kFirstSocket, F_SETFD, FD_CLOEXEC);
    manager.socket_.Reset(kFirstSocket);
  }
  Take("LISTEN_FDNAMES");
  return manager;
}

Manager& Manager::Ours() {
  static Manager manager = FromEnvironment();
  return manager;
}

bool Manager::Notify(std::string_view lines) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!present() || notify_path_.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, notify_path_.data(), notify_path_.size());
  // A name in the abstract space is written with an @ and begins with a zero byte.
  if (notify_path_.front() == '@') address.sun_path[0] = '\0';
  auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + notify_path_.size());
  wire::Descriptor sender(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!sender.valid()) return false;
  ssize_t sent = sendto(sender.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
                        reinterpret_cast<sockaddr*>(&address), length);
  return sent == static_cast<ssize_t>(lines.size());
}

std::string MonotonicLine() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t microseconds =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1'000;
  return "MONOTONIC_USEC=" + std::to_string(microseconds);
}

std::string PathOf(const wire::Descriptor& socket) {
  sockaddr_un address{};
  socklen_t length = sizeof(address) - 1;  // so that a zero follows the longest path
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  return address.sun_family == AF_UNIX ? address.sun_path : "";
}

}  // namespace longwire::service
