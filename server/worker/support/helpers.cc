#include "server/worker/support/helpers.h"

namespace longwire::worker {

void Helpers::Post(uint32_t thread, std::function<void()> work) {
  if (thread < kFirstOwn) thread %= kMaxClientHelpers;
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  auto& helper = helpers_[thread];
  if (helper == nullptr) {
    helper = std::make_unique<Helper>();
    helper->thread = std::thread([this, &helper = *helper] { Run(helper); });
  }
  std::lock_guard helper_lock(helper->mutex);
  ++pending_;
  helper->work.push_back(std::move(work));
  helper->changed.notify_one();
}

void Helpers::Run(Helper& helper) {
  enter_();
  std::unique_lock lock(helper.mutex);
  while (true) {
    helper.changed.wait(lock, [&] { return helper.stop || !helper.work.empty(); });
    if (helper.stop) return;
    auto work = std::move(helper.work.front());
    helper.work.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it holds goes without the lock
    --pending_;
    lock.lock();
  }
}

void Helpers::Stop() {
  std::map<uint32_t, std::unique_ptr<Helper>> helpers;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    helpers.swap(helpers_);
  }
  for (auto& [thread, helper] : helpers) {
    std::lock_guard lock(helper->mutex);
    helper->stop = true;
    helper->changed.notify_all();
  }
  for (auto& [thread, helper] : helpers) helper->thread.join();
}

}  // namespace longwire::worker
