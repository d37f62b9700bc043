#include "link/local_socket.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/log.h"

namespace longwire::link {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;

// Of one user at a time; each takes two threads and the addresses of four rings.
constexpr size_t kMaxSessions = 1024;
constexpr std::chrono::milliseconds kPause{10};  // while the system is out of descriptors

// What one more session takes, and those that open at the same moment. gRPC crashes without.
constexpr rlim_t kLeastSpare = 16, kSpareLimit = 64, kSpareShare = 8;

// The kernel gives the lowest free number, so `newest` says how many are in use.
bool HasDescriptorsBeside(int newest) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  const rlim_t spare = std::clamp(limit.rlim_cur / kSpareShare, kLeastSpare, kSpareLimit);
  return static_cast<rlim_t>(newest) + spare <= limit.rlim_cur;
}

// Held while the socket is opened or closed, so that two links never have the same one.
wire::Descriptor LockSocket(const std::string& path) {
  wire::Descriptor file(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.valid() && flock(file.get(), LOCK_EX) != 0) file.Reset();
  return file;
}

}  // namespace

std::string LocalSocket::FolderOf(const Options& options) {
  size_t slash = options.socket.rfind('/');
  return (slash == std::string::npos ? "." : options.socket.substr(0, slash)) + "/sessions";
}

std::string LocalSocket::OwnerOf(const Options& options) {
  std::string owner = options.identity.certificate;
  for (const transport::Address& server : options.servers) owner += " " + server.Text();
  return owner;
}

LocalSocket::Opened LocalSocket::Open() {
  wire::Descriptor lock = LockSocket(options_.socket);
  ended_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!lock.valid() || !ended_.valid()) return Opened::kFailed;
  spare_ = wire::Duplicate(ended_.get());
  if (wire::ConnectLocal(options_.socket).valid()) return Opened::kOtherLink;
  listener_ = wire::ListenLocal(options_.socket);
  if (!listener_.valid()) return Opened::kFailed;
  fcntl(listener_.get(), F_SETFL, fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
  return Opened::kOpen;
}

void LocalSocket::Accept() {
  while (true) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    if (!socket.valid()) return errno == EMFILE || errno == ENFILE ? RefuseOne(errno) : void();
    const bool enough = HasDescriptorsBeside(socket.get());
    if (!wire::PeerIsAllowed(socket.get(), geteuid())) {
      Log(LogLevel::kWarning, "a program of another user was refused");
      continue;
    }
    if (sessions_.size() >= kMaxSessions) {
      LinkSession(std::move(socket), servers_, leftovers_)
          .Reject("longwire-link serves " + std::to_string(kMaxSessions) +
                  " programs already, the most that one does");
      continue;
    }
    if (!enough) {
      Refuse(std::move(socket), EMFILE);
      continue;
    }
    Entry& entry = sessions_.emplace_back();
    entry.session = std::make_unique<LinkSession>(std::move(socket), servers_, leftovers_);
    bool started = base::StartThread(&entry.thread, [this, session = entry.session.get()] {
      session->Run();
      session->set_finished();
      eventfd_write(ended_.get(), 1);
    });
    if (started) continue;
    entry.session->Reject("longwire-link cannot serve one more program: " +
                          base::ReasonOfNoThread(errno));
    sessions_.pop_back();
  }
}

void LocalSocket::Refuse(wire::Descriptor socket, int error) {
  LinkSession(std::move(socket), servers_, leftovers_)
      .Reject("longwire-link cannot serve one more program: " + base::Reason(error));
}

// A program that waits gets the reason, by the descriptor that is kept for that.
void LocalSocket::RefuseOne(int error) {
  spare_.Reset();
  wire::Descriptor socket = wire::AcceptLocal(listener_.get());
  if (socket.valid()) {
    Refuse(std::move(socket), error);
  } else {
    std::this_thread::sleep_for(kPause);
  }
  spare_ = wire::Duplicate(ended_.get());
}

void LocalSocket::WatchPrograms(std::chrono::milliseconds timeout) {
  poll_set_.Clear();
  base::PollSet::Entry ended = poll_set_.Add(ended_.get());
  base::PollSet::Entry arrivals = poll_set_.Add(listener_.get());
  for (Entry& entry : sessions_) {
    // Not POLLIN: what a program sends belongs to its session's thread.
    entry.hang_up =
        entry.gone ? base::PollSet::Entry() : poll_set_.Add(entry.session->socket(), POLLRDHUP);
  }
  if (poll_set_.Wait(timeout) <= 0) return;
  for (Entry& entry : sessions_) {
    if (!poll_set_.Ready(entry.hang_up, POLLRDHUP | POLLHUP | POLLERR)) continue;
    entry.gone = true;
    entry.session->ProgramGone();
  }
  eventfd_t count = 0;
  if (poll_set_.Ready(ended)) eventfd_read(ended_.get(), &count);
  if (poll_set_.Ready(arrivals)) Accept();
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

std::chrono::milliseconds LocalSocket::Patience(Clock::time_point idle_since) const {
  using std::chrono::milliseconds;
  if (options_.idle.count() == 0 || !sessions_.empty()) return milliseconds(-1);
  auto left = std::chrono::ceil<milliseconds>(idle_since + options_.idle - Clock::now());
  return std::max(left, milliseconds(0));
}

void LocalSocket::Serve() {
  Leftovers::Sweep sweep(leftovers_, servers_);
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
