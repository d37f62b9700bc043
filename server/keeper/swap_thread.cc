#include "server/keeper/swap_thread.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace longwire::keeper {

SwapThread::SwapThread(DeviceMemory& device, bool clears)
    : device_(device),
      clears_(clears),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

SwapThread::~SwapThread() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void SwapThread::Add(std::vector<SwapJob> jobs) {
  if (jobs.empty()) return;
  waiting_ += jobs.size();
  {
    std::lock_guard lock(mutex_);
    for (SwapJob& job : jobs) jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

std::vector<SwapJob> SwapThread::Take() {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof(count));
  std::lock_guard lock(mutex_);
  waiting_ -= done_.size();
  return std::exchange(done_, {});
}

void SwapThread::Run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    SwapJob job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Do(job);
    lock.lock();
    done_.push_back(std::move(job));
    uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof(one));
  }
}

void SwapThread::Do(SwapJob& job) {
  for (HostPart& part : job.parts) {
    if (part.clear && clears_) device_.ClearHost(part);
  }
  switch (job.kind) {
    case SwapJob::Kind::kOut:
      job.code = device_.CopyOut(job.handle, job.bytes, job.parts);
      break;
    case SwapJob::Kind::kBack:
      job.code = device_.CopyIn(job.handle, job.bytes, job.parts);
      break;
    case SwapJob::Kind::kClear:
      break;
    case SwapJob::Kind::kPin: {
      std::byte* data = device_.Pin(job.bytes);
      if (data != nullptr) job.parts.push_back({data, job.bytes});
      break;
    }
  }
}

}  // namespace longwire::keeper
