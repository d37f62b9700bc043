#include "server/daemon/local_door.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/paths.h"
#include "server/daemon/view.h"
#include "wire/view.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr std::chrono::seconds kRequestPatience{5};
constexpr size_t kMaxClients = 1024;

// True when the client closed its end before or while a session is being opened.
bool HasGone(int socket) {
  pollfd look{socket, POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

mode_t ModeFor(const config::Config& config) {
  return NamesOtherUsers(config, geteuid()) ? 0666 : 0600;
}

void WaitUntilGone(int socket) {
  base::AssertNoRankedLockHeld();
  pollfd wait{socket, POLLRDHUP, 0};
  while (poll(&wait, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

bool LocalDoor::Start(const std::string& path, std::string* sentence) {
  path_ = path;
  if (!PrepareFolderOf(path, sentence)) return false;
  if (wire::ConnectLocal(path).valid()) {
    *sentence = "another process serves " + path + " already; is a longwired running?";
    return false;
  }
  listener_ = wire::ListenLocal(path, ModeFor(*table_.config()));
  if (!listener_.valid()) {
    *sentence = "cannot open the door at " + path + ": " + std::strerror(errno);
    return false;
  }
  thread_ = std::thread([this] { Loop(); });
  Log(LogLevel::kInfo, "door at " + path);
  return true;
}

void LocalDoor::SetMode(const config::Config& config) {
  if (!listener_.valid() || chmod(path_.c_str(), ModeFor(config)) == 0) return;
  Log(LogLevel::kError, "cannot change who may knock at " + path_ + ": " + std::strerror(errno));
}

void LocalDoor::Loop() {
  while (!stopping_.load()) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    if (stopping_.load()) return;
    if (!socket.valid()) {
      // Out of descriptors, most likely: not a reason to turn in circles.
      usleep(10'000);
      continue;
    }
    {
      base::MutexLock lock(mutex_);
      if (clients_ >= kMaxClients) continue;
      ++clients_;
    }
    std::thread([this, socket = std::move(socket)]() mutable {
      Serve(std::move(socket));
      base::MutexLock lock(mutex_);
      --clients_;
      fewer_.NotifyAll();
    }).detach();
  }
}

void LocalDoor::Serve(wire::Descriptor socket) {
  auto credentials = wire::PeerCredentials(socket.get());
  if (!credentials) return;
  auto message = wire::ReceiveMessage(socket.get(), kRequestPatience);
  if (!message) return;
  Peer peer = LocalPeer(credentials->uid, table_.config());
  if (wire::IsViewRequest(message->bytes)) {
    wire::SendMessage(socket.get(), EncodedView(table_, peer, message->bytes));
    return;
  }
  std::atomic<bool> cancelled{false};
  OpenedSession opened = table_.Open(message->bytes, wire::SpokenVersions(), peer, cancelled);
  wire::Writer writer;
  opened.reply.Encode(writer);
  if (opened.session == nullptr) {
    wire::SendMessage(socket.get(), writer.span());
    return;
  }
  std::vector<int> shared = opened.session->shared_descriptors();
  bool sent = !HasGone(socket.get()) && wire::SendMessage(socket.get(), writer.span(), shared);
  if (sent) {
    opened.session->set_on_end([descriptor = socket.get()](const transport::Closed& closed) {
      // The rings carry only the code.
      if (!closed.sentence.empty()) {
        wire::SendMessage(descriptor, std::as_bytes(std::span(closed.sentence)));
      }
      shutdown(descriptor, SHUT_RDWR);
    });
    WaitUntilGone(socket.get());
    // End may still be about to use the socket; it does so once, before it returns.
    opened.session->set_on_end({});
  }
  table_.End(opened.session, {});
}

void LocalDoor::Stop() {
  if (!listener_.valid() || stopping_.exchange(true)) return;
  shutdown(listener_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  unlink(path_.c_str());
  base::MutexLock lock(mutex_);
  while (clients_ != 0) fewer_.Wait(lock);
}

}  // namespace longwire::daemon
