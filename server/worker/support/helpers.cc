#include "server/worker/support/helpers.h"

namespace longwire::worker {

void Helpers::Post(uint32_t thread, std::function<void()> work) {
  if (thread < kFirstOwn) thread %= kMaxClientHelpers;
  base::MutexLock lock(mutex_);
  if (stopped_) return;
  auto& helper = helpers_[thread];
  if (helper == nullptr) {
    helper = std::make_unique<Helper>();
    helper->thread = std::thread([this, &helper = *helper] { Run(helper); });
  }
  base::MutexLock helper_lock(helper->mutex);
  ++pending_;
  ++helper->pending;
  helper->work.push_back(std::move(work));
  helper->changed.NotifyOne();
}

void Helpers::Run(Helper& helper) {
  enter_();
  base::MutexLock lock(helper.mutex);
  while (true) {
    while (!helper.stop && helper.work.empty()) helper.changed.Wait(lock);
    if (helper.stop) return;
    auto work = std::move(helper.work.front());
    helper.work.pop_front();
    lock.Unlock();
    work();
    work = nullptr;  // what it holds goes without the lock
    --pending_;
    lock.Lock();
    --helper.pending;
  }
}

bool Helpers::IsBusy(uint32_t thread) {
  if (idle()) return false;
  base::MutexLock lock(mutex_);
  auto found = helpers_.find(thread);
  if (found == helpers_.end()) return false;
  base::MutexLock helper_lock(found->second->mutex);
  return found->second->pending != 0;
}

void Helpers::Stop() {
  std::map<uint32_t, std::unique_ptr<Helper>> helpers;
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
    helpers.swap(helpers_);
  }
  for (auto& [thread, helper] : helpers) {
    base::MutexLock lock(helper->mutex);
    helper->stop = true;
    helper->changed.NotifyAll();
  }
  for (auto& [thread, helper] : helpers) helper->thread.join();
}

}  // namespace longwire::worker
