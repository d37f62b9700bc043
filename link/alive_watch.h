// Asks a server from time to time whether it is alive, while it works on a call that may take long.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <thread>

#include "base/lock_ranks.h"
#include "base/mutex.h"

namespace longwire::link {

class AliveWatch {
 public:
  // `alive` is called after each answer, by another thread, until the watch ends. A server that
  // does not answer is asked no more.
  AliveWatch(std::shared_ptr<grpc::Channel> channel, std::function<void()> alive);
  ~AliveWatch();
  AliveWatch(const AliveWatch&) = delete;
  AliveWatch& operator=(const AliveWatch&) = delete;

 private:
  void Run();
  bool Answers();

  const std::shared_ptr<grpc::Channel> channel_;
  const std::function<void()> alive_;
  base::Mutex mutex_{base::ranks::kAliveWatch};
  base::CondVar over_changed_;
  bool over_ LONGWIRE_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* asking_ LONGWIRE_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace longwire::link
