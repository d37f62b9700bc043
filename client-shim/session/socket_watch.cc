#include "client-shim/session/socket_watch.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "base/poll_set.h"
#include "client-shim/support/threads.h"
#include "wire/socket.h"

namespace longwire::shim {
namespace {

constexpr unsigned kUnshare = 1 << 1;  // CLOSE_RANGE_UNSHARE

// Who ends a session says why before anything else tells of the end, so they are on their way; on a
// busy machine this thread still has to get its turn to read them.
constexpr std::chrono::milliseconds kWordsPatience{1000};

bool IsSameFile(int one, int other) {
  struct stat of_one {
  }, of_other{};
  return fstat(one, &of_one) == 0 && fstat(other, &of_other) == 0 &&
         of_one.st_dev == of_other.st_dev && of_one.st_ino == of_other.st_ino;
}

}  // namespace

bool SocketWatch::Start(wire::Descriptor socket, Renewal renewal, std::function<void()> on_end) {
  on_end_ = std::move(on_end);
  renewal_ = std::move(renewal);
  in_own_table_ = std::move(socket);
  int number = in_own_table_.get();
  if (!StartThread(
          "longwire-watch", [](void* self) { static_cast<SocketWatch*>(self)->Run(); }, this)) {
    return false;
  }
  base::MutexLock lock(mutex_);
  while (probe_ < 0 && table_ == Table::kUnknown) changed_.Wait(lock);
  if (probe_ >= 0) {
    // A system that knows the call may still not have done it.
    table_ = IsSameFile(probe_, number) ? Table::kShared : Table::kOwn;
    apart_ = table_ == Table::kOwn;
  }
  if (apart_) {
    for (int kept : Kept()) close(kept);  // here; the thread has its own
  } else {
    in_programs_table_ = wire::OwnDescriptor(std::move(in_own_table_));
    for (wire::Descriptor& kept : renewal_.descriptors) {
      kept_in_programs_table_.emplace_back(std::move(kept));
    }
  }
  changed_.NotifyAll();
  while (!started_) changed_.Wait(lock);
  return true;
}

void SocketWatch::Run() {
  bool left = LeaveTable();
  {
    base::MutexLock lock(mutex_);
    started_ = true;
  }
  changed_.NotifyAll();
  do {
    Watch();
  } while (Renew());
  // The other side may wait for it.
  if (left) in_own_table_.Reset();
  {
    base::MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  on_end_();
}

bool SocketWatch::LeaveTable() {
  int socket = in_own_table_.get();
  // Of no descriptor at all, yet.
  bool left = syscall(SYS_close_range, ~0U, ~0U, kUnshare) == 0;
  int probe = left ? wire::Duplicate(socket).Release() : -1;
  base::MutexLock lock(mutex_);
  probe_ = probe;
  if (probe < 0) table_ = Table::kShared;
  changed_.NotifyAll();
  while (table_ == Table::kUnknown) changed_.Wait(lock);
  if (probe < 0) return false;
  if (table_ == Table::kShared) {
    close(probe);
    return false;
  }
  unsigned next = 0;
  for (int kept : Kept()) {
    if (static_cast<unsigned>(kept) > next) {
      syscall(SYS_close_range, next, static_cast<unsigned>(kept) - 1, 0U);
    }
    next = static_cast<unsigned>(kept) + 1;
  }
  syscall(SYS_close_range, next, ~0U, 0U);
  // What this thread prints or opens goes nowhere else.
  if (renewal_.connect) wire::SilenceStandardDescriptors();
  return true;
}

// In the order of their numbers.
std::vector<int> SocketWatch::Kept() const {
  std::vector<int> kept = {in_own_table_.get()};
  for (const wire::Descriptor& descriptor : renewal_.descriptors) kept.push_back(descriptor.get());
  std::sort(kept.begin(), kept.end());
  return kept;
}

// True if another socket has taken the place of the one that ended.
bool SocketWatch::Renew() {
  if (!renewal_.connect) return false;
  bool gone = !apart_ && in_programs_table_.get() < 0;
  {
    base::MutexLock lock(mutex_);
    if (gone || !words_.empty()) return false;
  }
  std::vector<int> numbers;
  for (const wire::Descriptor& kept : renewal_.descriptors) {
    if (apart_) numbers.push_back(kept.get());
  }
  for (const wire::OwnDescriptor& kept : kept_in_programs_table_) numbers.push_back(kept.get());
  if (std::find(numbers.begin(), numbers.end(), -1) != numbers.end()) return false;
  std::string sentence;
  wire::Descriptor socket = renewal_.connect(numbers, &sentence);
  if (!socket.valid()) {
    base::MutexLock lock(mutex_);
    words_ = sentence;
    return false;
  }
  if (apart_) {
    in_own_table_ = std::move(socket);
  } else {
    in_programs_table_ = wire::OwnDescriptor(std::move(socket));
  }
  return true;
}

void SocketWatch::Watch() {
  while (true) {
    int socket = apart_ ? in_own_table_.get() : in_programs_table_.get();
    if (socket < 0) return;
    short events = base::PollOne(socket, POLLIN | POLLRDHUP, std::chrono::milliseconds(-1));
    if ((events & POLLIN) == 0 || !TakeWords()) return;
  }
}

bool SocketWatch::TakeWords() {
  int socket = apart_ ? in_own_table_.get() : in_programs_table_.get();
  if (socket < 0) return false;
  auto message = wire::ReceiveMessage(socket, std::chrono::milliseconds(0));
  if (!message) return false;
  base::MutexLock lock(mutex_);
  words_.assign(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size());
  changed_.NotifyAll();
  return true;
}

std::string SocketWatch::LastWords() {
  base::MutexLock lock(mutex_);
  if (!started_) return {};
  auto until = std::chrono::steady_clock::now() + kWordsPatience;
  while (!ended_ && words_.empty() && changed_.WaitUntil(lock, until)) {
  }
  return words_;
}

}  // namespace longwire::shim
