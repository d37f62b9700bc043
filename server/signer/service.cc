#include "server/signer/service.h"

#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/reason.h"
#include "link/certificates/tcp_listener.h"
#include "link/transport/log.h"
#include "server/daemon/settings/paths.h"

namespace longwire::signer {
namespace {

using certificates::InviteAnswer;
using certificates::InviteRequest;
using transport::Log;
using transport::LogLevel;

constexpr int kBacklog = 128;
// A client takes some 10 ms, on a slow network a second.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kAdministratorPatience{1};
// The signer's own certificate, and when it makes the next one.
constexpr int kContextDays = 7;
constexpr std::chrono::hours kContextHours{24};
constexpr size_t kMaxGroups = 256;

Now TheTime() { return {std::time(nullptr), Connection::Clock::now()}; }

}  // namespace

bool Service::Open(const std::vector<transport::Address>& addresses, const std::string& socket,
                   std::string* sentence) {
  if (!RenewContext(sentence)) return false;
  for (const transport::Address& address : addresses) {
    if (!Listen(address, sentence)) return false;
  }
  if (!daemon::PrepareFolderOf(socket, sentence)) return false;
  if (wire::ConnectLocal(socket).valid()) {
    *sentence = "another longwire-signer answers at " + socket;
    return false;
  }
  local_ = wire::ListenLocal(socket, 0666);  // the kernel says who connects
  if (local_.valid()) return true;
  *sentence = "cannot listen at " + socket + ": " + base::Reason(errno);
  return false;
}

bool Service::Listen(const transport::Address& address, std::string* sentence) {
  auto opened = transport::ListenTcp(address, kBacklog, "longwire-signer", sentence);
  for (const wire::Descriptor& listener : opened) {
    const uint16_t port = transport::BoundAddress(listener.get()).port;
    if (port_ == 0) port_ = port;
    Log(LogLevel::kInfo, "listening at " + transport::Address{address.host, port}.Text());
  }
  const bool listens = !opened.empty();
  acceptor_.Add(std::move(opened));
  return listens;
}

// A new certificate of its own before the last one ends.
bool Service::RenewContext(std::string* sentence) {
  if (context_ != nullptr && Clock::now() < context_until_) return true;
  certificates::TlsContext made = MakeContext(authority_, kContextDays, sentence);
  if (made == nullptr) return false;
  context_ = std::move(made);  // open connections hold on to theirs
  context_until_ = Clock::now() + kContextHours;
  return true;
}

std::unique_ptr<certificates::TlsExchange> Service::Meet(wire::Descriptor socket,
                                                         const std::string& host) {
  std::string problem;
  if (!RenewContext(&problem)) Log(LogLevel::kError, problem);
  return std::make_unique<Connection>(
      std::move(socket), context_.get(), host, Clock::now() + kPatience,
      [this](const certificates::Request& request, const Caller& caller) {
        return signer_.Handle(request, caller, TheTime());
      });
}

void Service::RunOnce() {
  if (acceptor_.RunOnce(local_.get())) ServeAdministrator();
}

bool Service::MayInvite(int socket) const {
  auto peer = wire::PeerCredentials(socket);
  if (!peer) return false;
  if (wire::UidIsAllowed(peer->uid, geteuid())) return true;
  const group* allowed = group_.empty() ? nullptr : getgrnam(group_.c_str());
  if (allowed == nullptr) return false;
  std::vector<gid_t> groups(kMaxGroups);
  socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) != 0) bytes = 0;
  groups.resize(bytes / sizeof(gid_t));
  return peer->gid == allowed->gr_gid || std::ranges::count(groups, allowed->gr_gid) != 0;
}

void Service::ServeAdministrator() {
  wire::Descriptor socket = wire::AcceptLocal(local_.get());
  if (!socket.valid()) return;
  InviteAnswer answer;
  InviteRequest request;
  if (!MayInvite(socket.get())) {
    answer.problem = "only root" + (group_.empty() ? "" : " and members of the group " + group_) +
                     " may invite; run it with sudo";
  } else if (auto message = wire::ReceiveMessage(socket.get(), kAdministratorPatience);
             !message || !certificates::Unpack(message->bytes, &request)) {
    answer.problem = "the request cannot be read; command and signer differ in version";
  } else {
    answer = signer_.Invite(request, port_, TheTime());
  }
  std::string packed = certificates::Pack(answer);
  wire::SendMessage(socket.get(), std::as_bytes(std::span(packed)));
}

}  // namespace longwire::signer
