// A call with one request and one reply: accepted on the loop's thread, handled on one of its own.
// Each awaited event holds a reference; the call is deleted with the last one.
#pragma once

#include <memory>
#include <utility>

#include "server/daemon/accept_loop.h"

namespace longwire::daemon {

template <class Request, class Reply>
class UnaryCall : public std::enable_shared_from_this<UnaryCall<Request, Reply>> {
 public:
  using Responder = grpc::ServerAsyncResponseWriter<Reply>;
  // The service's method that waits for one call.
  using Method = void (Service::*)(grpc::ServerContext*, Request*, Responder*,
                                   grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*);
  // `again` accepts the next call of the kind.
  UnaryCall(AcceptLoop& loop, Method method, void (*again)(AcceptLoop&))
      : loop_(loop), method_(method), again_(again) {}
  virtual ~UnaryCall() = default;

  void Accept() {
    (loop_.service().*method_)(&context_, &request_, &responder_, &loop_.queue(), &loop_.queue(),
                               Await(&UnaryCall::OnArrived));
  }
  // Call it before Accept: cancelled() then reports whether the client has gone away.
  void WatchEnd() { context_.AsyncNotifyWhenDone(Await(&UnaryCall::OnDone)); }

 protected:
  // Calls Finish or Refuse once.
  virtual void Handle(const Peer& peer) = 0;

  AcceptLoop& loop() { return loop_; }
  const Request& request() const { return request_; }
  const std::atomic<bool>& cancelled() const { return cancelled_; }
  void Finish(const Reply& reply) {
    responder_.Finish(reply, grpc::Status::OK, Await(&UnaryCall::OnFinished));
  }
  void Refuse(grpc::StatusCode code, const std::string& sentence) {
    responder_.FinishWithError({code, sentence}, Await(&UnaryCall::OnFinished));
  }

 private:
  using Happened = void (UnaryCall::*)(bool);

  class Event final : public AcceptLoop::Waiting {
   public:
    Event(std::shared_ptr<UnaryCall> call, UnaryCall::Happened happened)
        : call_(std::move(call)), happened_(happened) {}
    void Happened(bool ok) override { ((*call_).*happened_)(ok); }

   private:
    std::shared_ptr<UnaryCall> call_;
    UnaryCall::Happened happened_;
  };

  Event* Await(Happened happened) { return new Event(this->shared_from_this(), happened); }

  void OnArrived(bool ok) {
    if (!ok) return;
    if (!loop_.stopping()) again_(loop_);
    Peer peer = loop_.PeerOf(context_);
    admission::Entrance& entrance = loop_.table().entrance();
    if (!peer.refused()) entrance.connections().Used(peer.address);
    auto share = entrance.EnterCall(peer.refused() ? peer.address : peer.identity);
    if (!share) {
      return Refuse(grpc::StatusCode::RESOURCE_EXHAUSTED,
                    "too many calls at once; try again in a few seconds");
    }
    auto held = std::make_shared<admission::Capacity::Share>(std::move(*share));
    bool spawned = loop_.Spawn(
        [self = this->shared_from_this(), held, peer = std::move(peer)] { self->Handle(peer); });
    if (spawned) return;
    if (loop_.stopping()) return Refuse(grpc::StatusCode::UNAVAILABLE, "the server shuts down");
    Refuse(grpc::StatusCode::RESOURCE_EXHAUSTED,
           "the server's host starts no more threads; its administrator can raise TasksMax= of "
           "longwired.service");
  }
  void OnDone(bool) { cancelled_.store(context_.IsCancelled()); }
  void OnFinished(bool) {}

  AcceptLoop& loop_;
  const Method method_;
  void (*const again_)(AcceptLoop&);
  grpc::ServerContext context_;
  Request request_;
  Responder responder_{&context_};
  std::atomic<bool> cancelled_{false};
};

}  // namespace longwire::daemon
