// Admin: what an administrator asks for over the network.
#include "server/daemon/admin.h"
#include "server/daemon/unary_call.h"

namespace longwire::daemon {
namespace {

class AdminCall final : public UnaryCall<transport::AdminRequest, transport::AdminReply> {
 public:
  explicit AdminCall(AcceptLoop& loop) : UnaryCall(loop, &Service::RequestAdmin, AcceptAdmin) {}

 private:
  void Handle(const Peer& peer) override {
    if (Admin* admin = loop().admin()) return Finish(admin->Handle(peer, request()));
    Refuse(grpc::StatusCode::UNAVAILABLE, "longwired is just starting");
  }
};

}  // namespace

void AcceptAdmin(AcceptLoop& loop) { std::make_shared<AdminCall>(loop)->Accept(); }

}  // namespace longwire::daemon
