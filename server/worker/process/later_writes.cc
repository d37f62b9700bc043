#include "server/worker/process/later_writes.h"

#include <utility>

#include "base/read_write.h"
#include "base/start_thread.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

const bool kWritesLater = !wire::IsSwitchedOff("overlapped-moves");

}  // namespace

LaterWrites::~LaterWrites() {
  {
    base::MutexLock lock(mutex_);
    stops_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void LaterWrites::Start() {
  // Without one Add writes.
  if (kWritesLater) (void)!base::StartThread(&thread_, [this] { Serve(); });
}

void LaterWrites::Serve() {
  base::MutexLock lock(mutex_);
  while (true) {
    while (!stops_ && items_.empty()) changed_.Wait(lock);
    if (stops_) return;
    const std::span<const std::byte> bytes = items_.front().bytes;
    const bool writes = !broken_;
    lock.Unlock();
    const bool written = writes && base::WriteAll(stream_, bytes);
    lock.Lock();
    Done(items_.front(), written);
    items_.pop_front();
    changed_.NotifyAll();
  }
}

void LaterWrites::Done(const Item& item, bool written) {
  broken_ |= !written;
  if (!item.piece) return;
  --pieces_;
  written_.push_back(*item.piece);
}

bool LaterWrites::Add(Item item) {
  const bool later = thread_.joinable();
  const bool written = later || base::WriteAll(stream_, item.bytes);
  base::MutexLock lock(mutex_);
  if (item.piece) ++pieces_;
  if (later) {
    items_.push_back(std::move(item));
    changed_.NotifyAll();
  } else {
    Done(item, written);
  }
  return !broken_;
}

bool LaterWrites::Write(std::vector<std::byte> bytes) {
  Item item;
  item.own = std::move(bytes);
  item.bytes = item.own;
  return Add(std::move(item));
}

bool LaterWrites::WriteFrom(std::span<const std::byte> bytes) { return Add({{}, bytes, {}}); }

bool LaterWrites::GiveBack(size_t piece) { return Add({{}, {}, piece}); }

bool LaterWrites::TakeWritten(std::vector<size_t>* pieces, bool wait) {
  base::MutexLock lock(mutex_);
  while (wait && !broken_ && written_.empty() && pieces_ != 0) changed_.Wait(lock);
  pieces->insert(pieces->end(), written_.begin(), written_.end());
  written_.clear();
  return !broken_;
}

bool LaterWrites::Flush() {
  base::MutexLock lock(mutex_);
  while (!broken_ && !items_.empty()) changed_.Wait(lock);
  return !broken_;
}

}  // namespace longwire::worker
