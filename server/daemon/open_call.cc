// Open: a session begins.
#include "server/config/config.h"
#include "server/daemon/pool/pool.h"
#include "server/daemon/unary_call.h"

namespace longwire::daemon {
namespace {

class OpenCall final
    : public UnaryCall<transport::OpenSessionRequest, transport::OpenSessionReply> {
 public:
  explicit OpenCall(AcceptLoop& loop) : UnaryCall(loop, &Service::RequestOpen, AcceptOpen) {}

 private:
  void Handle(const Peer& peer) override {
    SessionTable& table = loop().table();
    auto bytes = std::as_bytes(std::span(request().request()));
    const transport::PlaceRequest* place = request().has_place() ? &request().place() : nullptr;
    PoolOpening opening =
        OpenSession(loop().pool(), table, bytes, LinkVersions(), peer, place, cancelled());
    const OpenedSession& opened = opening.opened;
    if (!opening.place.address().empty()) {
      transport::OpenSessionReply reply;
      *reply.mutable_place() = std::move(opening.place);
      return Finish(reply);
    }
    if (!opening.places.empty()) {
      transport::OpenSessionReply reply;
      reply.mutable_places()->Assign(opening.places.begin(), opening.places.end());
      return Finish(reply);
    }
    // The link asks again, and finds the next daemon.
    if (opened.session == nullptr && table.left()) {
      return Refuse(grpc::StatusCode::UNAVAILABLE, "the server is restarted");
    }
    if (opened.session != nullptr && cancelled().load()) {
      table.End(opened.session, {0, "the client went away before it was open"});
    }
    transport::OpenSessionReply reply = ReplyOf(opened, table);
    reply.set_place_again(opening.place_again);
    Finish(reply);
  }

  wire::VersionRange LinkVersions() {
    wire::VersionRange versions{request().oldest_protocol(), request().newest_protocol()};
    return versions == wire::VersionRange() ? wire::kWithoutRange : versions;
  }

  static transport::OpenSessionReply ReplyOf(const OpenedSession& opened, SessionTable& table) {
    transport::OpenSessionReply reply;
    wire::Writer writer;
    opened.reply.Encode(writer);
    reply.set_reply(writer.data(), writer.size());
    if (opened.session == nullptr) return reply;
    reply.set_session(opened.session->id());
    reply.set_resume_token(opened.tokens[0].data(), opened.tokens[0].size());
    for (size_t lane = 1; lane < opened.tokens.size(); ++lane) {
      reply.add_transfer_tokens(opened.tokens[lane].data(), opened.tokens[lane].size());
    }
    auto grace = config::ResumeGrace(*table.config());
    reply.set_resume_grace_milliseconds(static_cast<uint32_t>(grace.count()));
    return reply;
  }
};

}  // namespace

void AcceptOpen(AcceptLoop& loop) {
  auto call = std::make_shared<OpenCall>(loop);
  call->WatchEnd();
  call->Accept();
}

}  // namespace longwire::daemon
