#include "server/daemon/local_socket.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/poll_set.h"
#include "base/reason.h"
#include "base/start_thread.h"
#include "link/transport/codes.h"
#include "link/transport/log.h"
#include "server/daemon/pool/pool.h"
#include "server/daemon/sessions/view.h"
#include "server/daemon/settings/paths.h"
#include "wire/guards.h"
#include "wire/view.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr std::chrono::milliseconds kForEver{-1};
constexpr std::chrono::milliseconds kDeadlineCheck{500};
constexpr useconds_t kPauseMicroseconds = 4'000;
constexpr int kAcceptedAtOnce = 32;
constexpr size_t kStrangers = 16;

// True when the client closed its end before or while a session is being opened.
bool HasGone(int socket) {
  short events = base::PollOne(socket, POLLRDHUP, std::chrono::milliseconds(0));
  return (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

mode_t ModeFor(const config::Config& config) {
  return NamesOtherUsers(config, geteuid()) ? 0666 : 0600;
}

void RefuseAtOnce(const wire::Descriptor& socket, const std::string& sentence) {
  wire::OpenReply reply;
  reply.code = transport::kDeviceUnavailable;
  reply.sentence = sentence;
  wire::Writer writer;
  reply.Encode(writer);
  wire::SendMessage(socket.get(), writer.span());
}

void WaitUntilGone(int socket, int leaves) {
  base::AssertNoRankedLockHeld();
  base::PollSet set;
  set.Add(socket, POLLRDHUP);
  set.Add(leaves);
  while (set.Wait(kForEver) < 0) usleep(kPauseMicroseconds);
}

}  // namespace

LocalSocket::LocalSocket(SessionTable& table)
    : table_(table), leaves_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

bool LocalSocket::Start(const std::string& path, std::string* sentence) {
  path_ = path;
  if (!PrepareFolderOf(path, sentence)) return false;
  if (wire::ConnectLocal(path).valid()) {
    *sentence = "another process serves " + path + " already; is a longwired running?";
    return false;
  }
  listener_ = wire::ListenLocal(path, ModeFor(*table_.config()));
  if (!listener_.valid()) {
    *sentence = "cannot open the local socket at " + path + ": " + base::Reason(errno);
    return false;
  }
  fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { Loop(); });
  Log(LogLevel::kInfo, "local socket at " + path);
  return true;
}

void LocalSocket::SetMode(const config::Config& config) {
  if (!listener_.valid() || chmod(path_.c_str(), ModeFor(config)) == 0) return;
  Log(LogLevel::kError, "cannot change who may connect to " + path_ + ": " + base::Reason(errno));
}

void LocalSocket::Loop() {
  base::PollSet set;
  while (true) {
    set.Clear();
    base::PollSet::Entry arrivals = set.Add(listener_.get());
    for (Waiting& one : waiting_) one.request = set.Add(one.socket.get());
    if (set.Wait(waiting_.empty() ? kForEver : kDeadlineCheck) < 0) usleep(kPauseMicroseconds);
    if (stopping_.load()) break;
    TakeRequests(set);
    // Who is refused may try again at once: that must cost others nothing.
    if (set.Ready(arrivals) && AcceptAll()) usleep(kPauseMicroseconds);
  }
  table_.entrance().AddLocal(-static_cast<int64_t>(waiting_.size()));
  waiting_.clear();
}

bool LocalSocket::AcceptAll() {
  bool refused = false;
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    // Without an error of its own: most likely out of descriptors, wait instead of spinning.
    if (!socket.valid()) {
      const int error = errno == EAGAIN || errno == ECONNABORTED ? 0 : errno;
      if (std::exchange(accept_error_, error) != error && error != 0) {
        Log(LogLevel::kError, "no program at " + path_ + " is served: " + base::Reason(error));
      }
      return refused || error != 0;
    }
    if (Keep(std::move(socket))) continue;
    refused = true;
    table_.entrance().CountLocalClosed();
  }
  return refused;
}

bool LocalSocket::Keep(wire::Descriptor socket) {
  auto credentials = wire::PeerCredentials(socket.get());
  if (!credentials) return false;
  Peer peer = LocalPeer(credentials->uid, table_.config());
  auto limits = table_.entrance().LocalLimits();
  // Those who may not use the server share a few connections: they only get the reason.
  const std::string party = peer.refused() ? "" : peer.identity;
  if (peer.refused()) limits.each = std::min(limits.each, kStrangers);
  std::map<std::string, size_t> counts;
  for (const Waiting& one : waiting_) ++counts[one.party];
  const bool checks = !wire::GuardIsOff("waiting");
  if (checks && counts[party] >= limits.each) return false;
  if (checks && waiting_.size() >= limits.all) {
    auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
    if (most->first == party) return false;
    waiting_.erase(std::ranges::find(waiting_, most->first, &Waiting::party));
    table_.entrance().AddLocal(-1);
    table_.entrance().CountLocalClosed();
  }
  table_.entrance().AddLocal(1);
  waiting_.push_back({std::move(socket),
                      credentials->uid,
                      party,
                      Clock::now() + table_.entrance().opening_time(),
                      {}});
  return true;
}

void LocalSocket::TakeRequests(const base::PollSet& set) {
  const auto now = Clock::now();
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const bool ready = set.Ready(one->request);
    if (ready && !HasGone(one->socket.get())) Begin(*one);
    const bool over = ready || now >= one->deadline;
    if (over) table_.entrance().AddLocal(-1);
    one = over ? waiting_.erase(one) : std::next(one);
  }
}

void LocalSocket::Begin(Waiting& waiting) {
  auto share = table_.entrance().EnterCall(std::string(kUidPrefix) + std::to_string(waiting.uid));
  if (!share) {
    return RefuseAtOnce(waiting.socket,
                        "this user opens too many sessions at once; try again in a few seconds");
  }
  {
    base::MutexLock lock(mutex_);
    ++clients_;
  }
  // What the thread takes with it is here if there is none.
  auto socket = std::make_shared<wire::Descriptor>(std::move(waiting.socket));
  std::thread thread;
  bool started = base::StartThread(
      &thread, [this, socket, uid = waiting.uid, share = std::move(*share)]() mutable {
        Serve(std::move(*socket), uid, std::move(share));
        CountEnded();
      });
  if (started) return thread.detach();
  std::string sentence = "the server cannot serve a session: " + base::ReasonOfNoThread(errno);
  Log(LogLevel::kError, sentence);
  RefuseAtOnce(*socket, sentence);
  CountEnded();
}

void LocalSocket::Inherit(SessionTable::LocalClients clients) {
  for (auto& [session, client] : clients) {
    {
      base::MutexLock lock(mutex_);
      ++clients_;
    }
    auto socket = std::make_shared<wire::Descriptor>(std::move(client));
    std::thread thread;
    bool started = base::StartThread(&thread, [this, socket, session = session] {
      Accompany(*socket, session);
      CountEnded();
    });
    if (started) {
      thread.detach();
      continue;
    }
    table_.End(session, {static_cast<uint32_t>(transport::kLaunchFailed),
                         "the server cannot go on: " + base::ReasonOfNoThread(errno)});
    CountEnded();
  }
}

void LocalSocket::CountEnded() {
  base::MutexLock lock(mutex_);
  --clients_;
  fewer_.NotifyAll();
}

void LocalSocket::Serve(wire::Descriptor socket, uid_t uid, admission::Capacity::Share opening) {
  auto message = wire::ReceiveMessage(socket.get(), std::chrono::milliseconds(0));
  if (!message) return;
  Peer peer = LocalPeer(uid, table_.config());
  if (wire::IsViewRequest(message->bytes)) {
    wire::SendMessage(socket.get(), EncodedView(table_, peer, message->bytes));
    return;
  }
  std::atomic<bool> cancelled{false};
  OpenedSession opened = std::move(
      OpenSession(pool_, table_, message->bytes, wire::SpokenVersions(), peer, nullptr, cancelled)
          .opened);
  opening.Leave();
  if (opened.session == nullptr && table_.left()) return;
  wire::Writer writer;
  opened.reply.Encode(writer);
  if (opened.session == nullptr) {
    wire::SendMessage(socket.get(), writer.span());
    return;
  }
  std::vector<int> shared = opened.session->shared_descriptors();
  table_.Keep(*opened.session, socket.get());
  bool sent = !HasGone(socket.get()) && wire::SendMessage(socket.get(), writer.span(), shared);
  if (sent) return Accompany(socket, opened.session);
  table_.End(opened.session, {});
}

void LocalSocket::Accompany(const wire::Descriptor& socket,
                            const std::shared_ptr<ServerSession>& session) {
  session->set_on_end([descriptor = socket.get()](const transport::Closed& closed) {
    // The rings carry the code only, so the sentence goes through the socket.
    if (!closed.sentence.empty()) {
      wire::SendMessage(descriptor, std::as_bytes(std::span(closed.sentence)));
    }
    shutdown(descriptor, SHUT_RDWR);
  });
  WaitUntilGone(socket.get(), leaves_.get());
  // Waits for an End that is using the socket, and keeps later ones from it.
  session->set_on_end({});
  table_.End(session, {});
}

void LocalSocket::Stop() {
  if (stopping_.exchange(true)) return;
  if (listener_.valid()) {
    shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    // Left behind, it says to clients that the next daemon is on its way (client-shim/connect).
    if (!table_.left()) unlink(path_.c_str());
  }
  if (table_.left()) eventfd_write(leaves_.get(), 1);
  base::MutexLock lock(mutex_);
  while (clients_ != 0) fewer_.Wait(lock);
}

}  // namespace longwire::daemon
