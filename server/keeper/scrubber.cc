#include "server/keeper/scrubber.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace longwire::keeper {

Scrubber::Scrubber(DeviceMemory& device)
    : device_(device), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { Run(); }) {}

Scrubber::~Scrubber() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Scrubber::Begin(std::vector<ScrubJob> jobs) {
  busy_ = true;
  {
    std::lock_guard lock(mutex_);
    jobs_ = std::move(jobs);
  }
  changed_.notify_one();
}

std::vector<ScrubJob> Scrubber::Take() {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof(count));
  std::lock_guard lock(mutex_);
  if (!done_.empty()) busy_ = false;
  return std::exchange(done_, {});
}

void Scrubber::Run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    std::vector<ScrubJob> jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (ScrubJob& job : jobs) job.code = device_.Zero(job.handle, job.bytes);
    lock.lock();
    done_ = std::move(jobs);
    uint64_t one = 1;
    (void)!write(event_.get(), &one, sizeof(one));
  }
}

}  // namespace longwire::keeper
