#include "server/daemon/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "link/transport/log.h"
#include "server/daemon/paths.h"

namespace longwire::daemon {
namespace {

constexpr std::string_view kReload = "reload";
constexpr std::string_view kDone = "done\n";
constexpr std::string_view kRefused = "refused\n";
constexpr std::chrono::seconds kRequestPatience{1};
// The daemon reads and checks files; it waits for no device.
constexpr std::chrono::seconds kReloadPatience{30};

std::string_view TextOf(const wire::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

bool Send(const wire::Descriptor& socket, std::string_view text) {
  return wire::SendMessage(socket.get(), std::as_bytes(std::span(text)));
}

}  // namespace

bool Control::Start(const std::string& path, std::string* sentence) {
  if (!PrepareFolderOf(path, sentence)) return false;
  if (wire::ConnectLocal(path).valid()) {
    *sentence = "another longwired answers at " + path;
    return false;
  }
  path_ = path;
  listener_ = wire::ListenLocal(path);
  if (!listener_.valid()) {
    *sentence = "cannot listen at " + path + ": " + std::strerror(errno);
    return false;
  }
  thread_ = std::thread([this] { Loop(); });
  return true;
}

void Control::Loop() {
  while (!stopping_.load()) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    if (stopping_.load()) return;
    if (!socket.valid()) {
      usleep(10'000);  // most likely out of descriptors: wait instead of spinning
    } else if (wire::PeerIsAllowed(socket.get(), geteuid())) {
      Serve(socket);
    }
  }
}

void Control::Serve(const wire::Descriptor& socket) {
  auto request = wire::ReceiveMessage(socket.get(), kRequestPatience);
  if (!request || TextOf(*request) != kReload) return;
  Reloader::Outcome outcome = reload_("longwired --reload");
  std::string answer(outcome.done ? kDone : kRefused);
  for (const std::string& sentence : outcome.sentences) answer += sentence + "\n";
  answer.resize(std::min(answer.size(), wire::kMaxMessageBytes));
  Send(socket, answer);
}

void Control::Stop() {
  if (!listener_.valid() || stopping_.exchange(true)) return;
  shutdown(listener_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  unlink(path_.c_str());
}

std::string ControlPath() { return RuntimeDirectory() + "/control"; }

bool AskForReload(const std::string& path, std::string* text) {
  wire::Descriptor socket = wire::ConnectLocal(path);
  if (!socket.valid()) {
    *text = "no longwired answers at " + path + ": " + std::strerror(errno) + "\n";
    return false;
  }
  auto answer =
      Send(socket, kReload) ? wire::ReceiveMessage(socket.get(), kReloadPatience) : std::nullopt;
  std::string_view said = answer ? TextOf(*answer) : "";
  bool done = said.starts_with(kDone);
  bool refused = said.starts_with(kRefused);
  if (done || refused) {
    *text = said.substr(said.find('\n') + 1);
  } else {
    *text = "longwired did not report the result; see its log\n";
  }
  return done;
}

}  // namespace longwire::daemon
