#include "server/daemon/local_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/poll_set.h"
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
  short events = base::PollOne(socket, POLLRDHUP, std::chrono::milliseconds(0));
  return (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

mode_t ModeFor(const config::Config& config) {
  return NamesOtherUsers(config, geteuid()) ? 0666 : 0600;
}

void WaitUntilGone(int socket) {
  base::AssertNoRankedLockHeld();
  base::PollOne(socket, POLLRDHUP, std::chrono::milliseconds(-1));
}

}  // namespace

bool LocalSocket::Start(const std::string& path, std::string* sentence) {
  path_ = path;
  if (!PrepareFolderOf(path, sentence)) return false;
  if (wire::ConnectLocal(path).valid()) {
    *sentence = "another process serves " + path + " already; is a longwired running?";
    return false;
  }
  listener_ = wire::ListenLocal(path, ModeFor(*table_.config()));
  if (!listener_.valid()) {
    *sentence = "cannot open the local socket at " + path + ": " + std::strerror(errno);
    return false;
  }
  thread_ = std::thread([this] { Loop(); });
  Log(LogLevel::kInfo, "local socket at " + path);
  return true;
}

void LocalSocket::SetMode(const config::Config& config) {
  if (!listener_.valid() || chmod(path_.c_str(), ModeFor(config)) == 0) return;
  Log(LogLevel::kError, "cannot change who may connect to " + path_ + ": " + std::strerror(errno));
}

void LocalSocket::Loop() {
  while (!stopping_.load()) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    if (stopping_.load()) return;
    if (!socket.valid()) {
      // Most likely out of descriptors: wait instead of spinning.
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

void LocalSocket::Serve(wire::Descriptor socket) {
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
      // The rings carry the code only, so the sentence goes through the socket.
      if (!closed.sentence.empty()) {
        wire::SendMessage(descriptor, std::as_bytes(std::span(closed.sentence)));
      }
      shutdown(descriptor, SHUT_RDWR);
    });
    WaitUntilGone(socket.get());
    // Waits for an End that is using the socket, and keeps later ones from it.
    opened.session->set_on_end({});
  }
  table_.End(opened.session, {});
}

void LocalSocket::Stop() {
  if (!listener_.valid() || stopping_.exchange(true)) return;
  shutdown(listener_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  unlink(path_.c_str());
  base::MutexLock lock(mutex_);
  while (clients_ != 0) fewer_.Wait(lock);
}

}  // namespace longwire::daemon
