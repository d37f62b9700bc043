#include "server/signer/service.h"

#include <arpa/inet.h>
#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/poll_set.h"
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
// A client takes some 10 ms, on a slow network a second. More than kMaxConnections wait in the
// kernel; more than kMaxOfAddress are closed, so that one host cannot keep the others waiting.
constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxOfAddress = 8;
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kAdministratorPatience{1};
// The signer's own certificate, and when it makes the next one.
constexpr int kContextDays = 7;
constexpr std::chrono::hours kContextHours{24};
constexpr std::chrono::milliseconds kForEver{-1};
constexpr useconds_t kPauseMicroseconds = 10'000;  // most likely out of descriptors
constexpr size_t kMaxGroups = 256;

// Of an IPv6 address the /64: one host has all of it.
std::string AddressText(const sockaddr_storage& storage) {
  const std::string whole = transport::AddressOf(storage).host;
  in6_addr v6{};
  if (inet_pton(AF_INET6, whole.c_str(), &v6) != 1) return whole;
  char text[INET6_ADDRSTRLEN] = "";
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, 0);
  inet_ntop(AF_INET6, &v6, text, sizeof(text));
  return std::string(text) + "/64";
}

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
  for (wire::Descriptor& listener : opened) {
    const uint16_t port = transport::BoundAddress(listener.get()).port;
    if (port_ == 0) port_ = port;
    Log(LogLevel::kInfo, "listening at " + transport::Address{address.host, port}.Text());
    listeners_.push_back(std::move(listener));
  }
  return !opened.empty();
}

// A new certificate of its own before the last one ends.
bool Service::RenewContext(std::string* sentence) {
  if (context_ != nullptr && Clock::now() < context_until_) return true;
  ContextPointer made = MakeContext(authority_, kContextDays, sentence);
  if (made == nullptr) return false;
  context_ = std::move(made);  // open connections hold on to theirs
  context_until_ = Clock::now() + kContextHours;
  return true;
}

void Service::Accept(int listener) {
  sockaddr_storage storage{};
  wire::Descriptor socket = transport::AcceptTcp(listener, &storage);
  if (!socket.valid()) return;
  std::string address = AddressText(storage);
  auto of_address = std::ranges::count(connections_, address, &Connection::address);
  if (static_cast<size_t>(of_address) >= kMaxOfAddress) return;
  std::string problem;
  if (!RenewContext(&problem)) Log(LogLevel::kError, problem);
  connections_.emplace_back(std::move(socket), context_.get(), address, Clock::now() + kPatience);
}

void Service::RunOnce() {
  base::PollSet set;
  base::PollSet::Entry local = set.Add(local_.get());
  std::vector<base::PollSet::Entry> listening;
  if (connections_.size() < kMaxConnections) {
    for (const wire::Descriptor& listener : listeners_)
      listening.push_back(set.Add(listener.get()));
  }
  auto wait = kForEver;
  const auto start = Clock::now();
  std::vector<base::PollSet::Entry> entries;
  for (const Connection& open : connections_) {
    entries.push_back(set.Add(open.socket(), open.events()));
    auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(open.deadline() - start),
                         std::chrono::milliseconds(0));
    wait = wait == kForEver ? left : std::min(wait, left);
  }
  if (set.Wait(wait) < 0) {
    usleep(kPauseMicroseconds);
    return;
  }
  auto handle = [this](const certificates::Request& request, const Caller& caller) {
    return signer_.Handle(request, caller, TheTime());
  };
  const auto now = Clock::now();
  auto entry = entries.begin();
  connections_.remove_if([&](Connection& open) {
    bool goes_on = !set.Ready(*entry++) || open.GoOn(handle);
    return !goes_on || now >= open.deadline();
  });
  for (size_t i = 0; i < listening.size(); ++i) {
    if (set.Ready(listening[i])) Accept(listeners_[i].get());
  }
  if (set.Ready(local)) ServeAdministrator();
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
