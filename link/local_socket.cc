#include "link/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <vector>

#include "link/transport/log.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;

// Of one user at a time; each takes two threads and the addresses of four rings.
constexpr size_t kMaxSessions = 1024;

// Held while the socket is opened or closed, so that two links never have the same one.
wire::Descriptor LockSocket(const std::string& path) {
  wire::Descriptor file(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.valid() && flock(file.get(), LOCK_EX) != 0) file.Reset();
  return file;
}

}  // namespace

LocalSocket::Opened LocalSocket::Open() {
  wire::Descriptor lock = LockSocket(options_.socket);
  ended_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!lock.valid() || !ended_.valid()) return Opened::kFailed;
  if (wire::ConnectLocal(options_.socket).valid()) return Opened::kOtherLink;
  listener_ = wire::ListenLocal(options_.socket);
  if (!listener_.valid()) return Opened::kFailed;
  fcntl(listener_.get(), F_SETFL, fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
  return Opened::kOpen;
}

void LocalSocket::Accept() {
  while (true) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    if (!socket.valid()) return;
    if (!wire::PeerIsAllowed(socket.get(), geteuid())) {
      Log(LogLevel::kWarning, "a program of another user was refused");
      continue;
    }
    if (sessions_.size() >= kMaxSessions) {
      Log(LogLevel::kWarning, "too many programs at once; one was refused");
      continue;
    }
    Entry& entry = sessions_.emplace_back();
    entry.session = std::make_unique<LinkSession>(std::move(socket), servers_);
    entry.thread = std::thread([this, session = entry.session.get()] {
      session->Run();
      session->set_finished();
      eventfd_write(ended_.get(), 1);
    });
  }
}

void LocalSocket::WatchPrograms(int timeout_milliseconds) {
  std::vector<pollfd> waits = {{ended_.get(), POLLIN, 0}};
  std::vector<Entry*> entries;
  if (listener_.valid()) waits.push_back({listener_.get(), POLLIN, 0});
  size_t first = waits.size();
  for (Entry& entry : sessions_) {
    if (entry.gone) continue;
    // Not POLLIN: what a program sends belongs to its session's thread.
    waits.push_back({entry.session->socket(), POLLRDHUP, 0});
    entries.push_back(&entry);
  }
  if (poll(waits.data(), waits.size(), timeout_milliseconds) <= 0) return;
  for (size_t i = first; i < waits.size(); ++i) {
    if ((waits[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) continue;
    entries[i - first]->gone = true;
    entries[i - first]->session->ProgramGone();
  }
  eventfd_t ended = 0;
  if (waits[0].revents != 0) eventfd_read(ended_.get(), &ended);
  if (first > 1 && waits[1].revents != 0) Accept();
}

void LocalSocket::Reap() {
  for (auto entry = sessions_.begin(); entry != sessions_.end();) {
    if (entry->session->finished()) {
      entry->thread.join();
      entry = sessions_.erase(entry);
    } else {
      ++entry;
    }
  }
}

void LocalSocket::Close() {
  wire::Descriptor lock = LockSocket(options_.socket);
  unlink(options_.socket.c_str());
  // Programs that have connected by now are served; later ones start a new link.
  Accept();
  listener_.Reset();
}

// Milliseconds until the socket closes because no program came; -1: no limit.
int LocalSocket::Patience(Clock::time_point idle_since) const {
  if (options_.idle.count() == 0 || !sessions_.empty()) return -1;
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(idle_since + options_.idle - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
}

void LocalSocket::Serve() {
  auto idle_since = Clock::now();
  while (listener_.valid() || !sessions_.empty()) {
    WatchPrograms(Patience(idle_since));
    if (!sessions_.empty()) idle_since = Clock::now();
    Reap();
    if (listener_.valid() && options_.idle.count() != 0 &&
        Clock::now() - idle_since >= options_.idle) {
      Close();
    }
  }
}

}  // namespace longwire::link
