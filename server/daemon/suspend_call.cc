// Suspend: a program has its own session suspended, or lets it go on (docs/moving.md). It may do so
// with what it suspended itself, and its tenant's programs together within limits.
#include <algorithm>
#include <ctime>

#include "base/printable.h"
#include "base/uuid_text.h"
#include "link/transport/log.h"
#include "server/daemon/checkpoints/own_suspensions.h"
#include "server/daemon/sessions/session_record.h"
#include "server/daemon/sessions/session_table.h"
#include "server/daemon/unary_call.h"

namespace longwire::daemon {
namespace {

class OwnSession {
 public:
  OwnSession(SessionTable& table, const Peer& peer, const transport::SuspendRequest& request)
      : table_(table),
        peer_(peer),
        request_(request),
        host_(base::Printable(request.client_host())) {}

  transport::SuspendReply Answer() {
    Look();
    reply_.set_done(Does());
    Look();  // afterwards
    return reply_;
  }

 private:
  // Where the session is, if it is this program's.
  void Look() {
    running_ = table_.FindAlsoMoved(request_.session());
    if (running_ != nullptr && !IsOwn(running_->client())) running_ = nullptr;
    ticket_ = running_ == nullptr ? table_.suspended().Find(request_.session()) : std::nullopt;
    if (ticket_ && !IsOwn(*ticket_)) ticket_ = std::nullopt;
    reply_.set_known(running_ != nullptr || ticket_);
    reply_.set_suspended(ticket_.has_value());
  }

  bool IsOwn(const ClientDescription& client) const {
    return client.pid == request_.client_pid() && client.host == host_ &&
           client.peer.identity == peer_.identity &&
           client.peer.tenant->name() == peer_.tenant->name();
  }
  bool IsOwn(const Ticket& ticket) const {
    SessionRecord record;
    return Decode(ticket.record, &record) && record.pid == request_.client_pid() &&
           record.host == host_ && ticket.identity == peer_.identity &&
           ticket.tenant == peer_.tenant->name();
  }

  bool Does() {
    if (!reply_.known()) {
      return Say("this server has no session " + std::to_string(request_.session()) +
                 " of this program");
    }
    switch (request_.wish()) {
      case transport::SuspendRequest::STATE:
        return true;
      case transport::SuspendRequest::SUSPEND:
        return ticket_ || Suspend();
      case transport::SuspendRequest::RESTORE:
        return running_ != nullptr || Restore();
      default:
        return Say("longwired is older than the program's Longwire: upgrade it");
    }
  }

  bool Suspend() {
    std::string sentence;
    OwnSuspensions::Turn turn(table_.own_suspensions(), peer_.tenant->name());
    if (!turn.begins()) {
      return Say("another program of the tenant is being suspended just now; try again");
    }
    uint64_t left = 0;
    if (!BytesLeft(*table_.config(), table_.suspended().List(), peer_.tenant->name(), &left,
                   &sentence)) {
      return Say(sentence);
    }
    const std::string file = kOwnFiles + std::to_string(running_->id()) + "-" +
                             std::to_string(static_cast<uint64_t>(time(nullptr)));
    const bool done = table_.Suspend(running_->id(), file, &sentence, left);
    return Say(sentence) || done;
  }

  bool Restore() {
    if (!ticket_->file.starts_with(kOwnFiles)) {
      return Say(
          "an administrator of the server has suspended this session, and restores it "
          "(longwire admin restore)");
    }
    int32_t device = ticket_->device;
    if (!request_.device().empty() && !FindDevice(&device)) return false;
    std::string sentence;
    const bool done = table_.Restore(ticket_->file, device, &sentence);
    return Say(sentence) || done;
  }

  bool FindDevice(int32_t* device) {
    std::string sentence;
    auto stats = table_.warden().GetStats(&sentence);
    if (!stats) return Say(sentence);
    for (const warden::DeviceStats& one : stats->devices) {
      if (one.facts.uuid != request_.device()) continue;
      *device = one.device;
      return true;
    }
    return Say("this server has no device " + base::UuidText(request_.device()));
  }

  // False, for returning.
  bool Say(const std::string& sentence) {
    reply_.set_sentence(sentence);
    return false;
  }

  SessionTable& table_;
  const Peer& peer_;
  const transport::SuspendRequest& request_;
  const std::string host_;  // as sessions have it
  std::shared_ptr<ServerSession> running_;
  std::optional<Ticket> ticket_;
  transport::SuspendReply reply_;
};

class SuspendCall final : public UnaryCall<transport::SuspendRequest, transport::SuspendReply> {
 public:
  explicit SuspendCall(AcceptLoop& loop)
      : UnaryCall(loop, &Service::RequestSuspend, AcceptSuspend) {}

 private:
  void Handle(const Peer& peer) override {
    if (peer.refused()) return Refuse(grpc::StatusCode::PERMISSION_DENIED, peer.refusal);
    Finish(OwnSession(loop().table(), peer, request()).Answer());
  }
};

}  // namespace

void AcceptSuspend(AcceptLoop& loop) { std::make_shared<SuspendCall>(loop)->Accept(); }

}  // namespace longwire::daemon
