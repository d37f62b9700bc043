#include "server/daemon/control.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "link/transport/log.h"
#include "server/daemon/settings/paths.h"

namespace longwire::daemon {
namespace {

using transport::Log;
using transport::LogLevel;

constexpr std::chrono::seconds kRequestPatience{1};
// Of one packet of an answer: who does not read it does not hold up the next one.
constexpr timeval kSendPatience{5, 0};
constexpr size_t kPartBytes = 128 << 10;
constexpr mode_t kForOwner = 0600;
constexpr mode_t kForGroup = 0660;
constexpr mode_t kForKnown = 0666;  // the credentials alone decide
constexpr size_t kMaxGroups = 65536;
// At once; those who may only look cannot take all.
constexpr size_t kMaxCalls = 32;
constexpr size_t kMaxLooks = 16;
constexpr const char* kBusy =
    "longwired has too many administrators' commands at once; try again when one has ended\n";
constexpr const char* kNotAllowed =
    "only root, the user that longwired runs as and members of its admin_group may administer it";
constexpr const char* kMayOnlyLook =
    "members of the watch_group may only look; root, the user that longwired runs as and members "
    "of its admin_group may administer it\n";

std::string_view TextOf(const wire::Message& message) {
  return {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()};
}

bool Send(int socket, std::string_view text) {
  return wire::SendMessage(socket, std::as_bytes(std::span(text)));
}

void SendReply(int socket, std::string_view rest) {
  if (!Send(socket, std::string(kReplyWord) + std::to_string(rest.size()) + "\n")) return;
  while (!rest.empty() && Send(socket, rest.substr(0, kPartBytes))) {
    rest.remove_prefix(std::min(rest.size(), kPartBytes));
  }
}

// The groups of the process that connected, besides its first one.
bool IsMember(int socket, gid_t group) {
  std::vector<gid_t> groups(64);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  while (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0) {
    if (errno != ERANGE || groups.size() >= kMaxGroups) return false;
    groups.resize(groups.size() * 2);
    bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  }
  groups.resize(bytes / sizeof(gid_t));
  return std::ranges::count(groups, group) != 0;
}

std::optional<gid_t> FindGroup(const std::string& name) {
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> text(64 << 10);
  if (name.empty() || getgrnam_r(name.c_str(), &entry, text.data(), text.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return found->gr_gid;
}

}  // namespace

bool Control::Start(const std::string& path, std::string* sentence, const Groups& groups) {
  if (!PrepareFolderOf(path, sentence)) return false;
  if (wire::ConnectLocal(path).valid()) {
    *sentence = "another longwired answers at " + path;
    return false;
  }
  path_ = path;
  listener_ = wire::ListenLocal(path, kForOwner);
  if (!listener_.valid()) {
    *sentence = "cannot listen at " + path + ": " + base::Reason(errno);
    return false;
  }
  OpenTo(groups);
  thread_ = std::thread([this] { Loop(); });
  return true;
}

void Control::OpenTo(const Groups& groups) {
  admin_group_ = FindGroup(groups.admin);
  watch_group_ = FindGroup(groups.watch);
  if (!admin_group_ && !watch_group_) return;
  // Only root and a member may give the file to a group, and it can have one.
  bool given = !watch_group_ && chown(path_.c_str(), static_cast<uid_t>(-1), *admin_group_) == 0;
  if (chmod(path_.c_str(), given ? kForGroup : kForKnown) == 0) return;
  Log(LogLevel::kWarning, "no group can use " + path_ + ": " + base::Reason(errno));
}

Control::Right Control::RightOf(int socket, const wire::Credentials& peer) const {
  auto in = [&](const std::optional<gid_t>& group) {
    return group && (peer.gid == *group || IsMember(socket, *group));
  };
  if (wire::UidIsAllowed(peer.uid, geteuid()) || in(admin_group_)) return Right::kAdminister;
  return in(watch_group_) ? Right::kWatch : Right::kNone;
}

void Control::Loop() {
  while (!stopping_.load()) {
    wire::Descriptor socket = wire::AcceptLocal(listener_.get());
    if (stopping_.load()) return;
    if (!socket.valid()) {
      usleep(10'000);  // most likely out of descriptors: wait instead of spinning
      continue;
    }
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendPatience, sizeof(kSendPatience));
    auto peer = wire::PeerCredentials(socket.get());
    if (!peer) continue;
    const std::string who = "uid " + std::to_string(peer->uid) + " at the control socket";
    const Right right = RightOf(socket.get(), *peer);
    if (right != Right::kNone) {
      ServeBeside(std::move(socket), {who, right == Right::kAdminister});
    } else {
      // Before anything is read: nobody else can keep the thread.
      Log(LogLevel::kWarning, {.peer = who}, "administration by " + who + " was refused");
      Send(socket.get(), std::string(kRefusedWord) + kNotAllowed + "\n");
    }
  }
}

void Control::JoinCalls(bool all) {
  std::erase_if(calls_, [all](Call& call) {
    if (!all && !call.done.load()) return false;
    call.thread.join();
    return true;
  });
}

void Control::ServeBeside(wire::Descriptor socket, Caller caller) {
  JoinCalls(false);
  if (calls_.size() < (caller.administers ? kMaxCalls : kMaxLooks)) {
    Call& call = calls_.emplace_back();
    auto held = std::make_shared<wire::Descriptor>(std::move(socket));
    try {
      call.thread = std::thread([this, &call, held, caller = std::move(caller)] {
        Serve(*held, caller);
        held->Reset();
        call.done = true;
      });
      return;
    } catch (const std::system_error&) {  // the host starts no more threads
      calls_.pop_back();
      socket = std::move(*held);
    }
  }
  Send(socket.get(), std::string(kRefusedWord) + kBusy);
}

void Control::Serve(const wire::Descriptor& socket, const Caller& caller) {
  auto request = wire::ReceiveMessage(socket.get(), kRequestPatience);
  if (!request) return;
  std::string_view text = TextOf(*request);
  if (text == kReloadWord && !caller.administers) {
    Send(socket.get(), std::string(kRefusedWord) + kMayOnlyLook);
  } else if (text == kReloadWord) {
    Reloader::Outcome outcome = reload_("longwired --reload");
    std::string answer(outcome.done ? kDoneWord : kRefusedWord);
    for (const std::string& sentence : outcome.sentences) answer += sentence + "\n";
    answer.resize(std::min(answer.size(), wire::kMaxMessageBytes));
    Send(socket.get(), answer);
  } else if (answer_ && text.starts_with(kCallWord)) {
    SendReply(socket.get(), answer_(caller, text.substr(kCallWord.size())));
  }
}

void Control::Stop() {
  if (!listener_.valid() || stopping_.exchange(true)) return;
  shutdown(listener_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  JoinCalls(true);
  unlink(path_.c_str());
}

}  // namespace longwire::daemon
