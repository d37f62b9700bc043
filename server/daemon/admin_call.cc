// Admin: what an administrator asks for over the network.
#include "server/daemon/accept_loop.h"
#include "server/daemon/admin.h"

namespace longwire::daemon {
namespace {

class AdminCall : public std::enable_shared_from_this<AdminCall> {
 public:
  explicit AdminCall(AcceptLoop& loop) : loop_(loop) {}

  void Accept() {
    loop_.service().RequestAdmin(&context_, &request_, &responder_, &loop_.queue(), &loop_.queue(),
                                 new Event(shared_from_this(), true));
  }

 private:
  class Event final : public AcceptLoop::Waiting {
   public:
    Event(std::shared_ptr<AdminCall> call, bool arrival)
        : call_(std::move(call)), arrival_(arrival) {}
    void Happened(bool ok) override {
      if (arrival_ && ok) call_->OnArrived();
    }

   private:
    std::shared_ptr<AdminCall> call_;
    bool arrival_;
  };

  void OnArrived() {
    if (!loop_.stopping()) AcceptAdmin(loop_);
    auto self = shared_from_this();
    bool spawned = loop_.Spawn([self] { self->Handle(); });
    if (!spawned) {
      responder_.FinishWithError({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls at once"},
                                 new Event(self, false));
    }
  }

  void Handle() {
    Peer peer = PeerOf(context_, loop_.table().config());
    auto finished = new Event(shared_from_this(), false);
    if (Admin* admin = loop_.admin()) {
      responder_.Finish(admin->Handle(peer, request_), grpc::Status::OK, finished);
    } else {
      responder_.FinishWithError({grpc::StatusCode::UNAVAILABLE, "longwired is just starting"},
                                 finished);
    }
  }

  AcceptLoop& loop_;
  grpc::ServerContext context_;
  transport::AdminRequest request_;
  grpc::ServerAsyncResponseWriter<transport::AdminReply> responder_{&context_};
};

}  // namespace

void AcceptAdmin(AcceptLoop& loop) { std::make_shared<AdminCall>(loop)->Accept(); }

}  // namespace longwire::daemon
