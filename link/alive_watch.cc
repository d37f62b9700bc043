#include "link/alive_watch.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <utility>

#include "base/start_thread.h"
#include "proto/transport.grpc.pb.h"

namespace longwire::link {
namespace {

// Together less than a server may take that says nothing (kAnswerPatience in link_session.cc).
constexpr std::chrono::milliseconds kEvery{1500};
constexpr std::chrono::milliseconds kPatience{2500};

}  // namespace

AliveWatch::AliveWatch(std::shared_ptr<grpc::Channel> channel, std::function<void()> alive)
    : channel_(std::move(channel)), alive_(std::move(alive)) {
  // Without a thread the server has as long as one that says nothing.
  (void)base::StartThread(&thread_, [this] { Run(); });
}

AliveWatch::~AliveWatch() {
  {
    base::MutexLock lock(mutex_);
    over_ = true;
    if (asking_ != nullptr) asking_->TryCancel();
  }
  over_changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void AliveWatch::Run() {
  while (true) {
    {
      const auto next = std::chrono::steady_clock::now() + kEvery;
      base::MutexLock lock(mutex_);
      while (!over_ && over_changed_.WaitUntil(lock, next)) {
      }
      if (over_) return;
    }
    if (!Answers()) return;
    alive_();
  }
}

bool AliveWatch::Answers() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  {
    base::MutexLock lock(mutex_);
    if (over_) return false;
    asking_ = &context;
  }
  transport::InspectRequest request;
  request.set_client_version(LONGWIRE_VERSION);
  transport::InspectReply reply;
  const bool answers =
      transport::Transport::NewStub(channel_)->Inspect(&context, request, &reply).ok();
  base::MutexLock lock(mutex_);
  asking_ = nullptr;
  return answers && !over_;
}

}  // namespace longwire::link
