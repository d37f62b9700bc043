#include "client-shim/session/socket_watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "client-shim/support/threads.h"
#include "wire/socket.h"

namespace longwire::shim {
namespace {

constexpr unsigned kUnshare = 1 << 1;  // CLOSE_RANGE_UNSHARE

// Who ends a session says why before anything else tells of the end, so they are on their way.
constexpr std::chrono::milliseconds kWordsPatience{100};

bool IsSameFile(int one, int other) {
  struct stat of_one {
  }, of_other{};
  return fstat(one, &of_one) == 0 && fstat(other, &of_other) == 0 &&
         of_one.st_dev == of_other.st_dev && of_one.st_ino == of_other.st_ino;
}

}  // namespace

bool SocketWatch::Start(wire::Descriptor socket, std::function<void()> on_end) {
  on_end_ = std::move(on_end);
  in_own_table_ = std::move(socket);
  int number = in_own_table_.get();
  if (!StartThread(
          "longwire-watch", [](void* self) { static_cast<SocketWatch*>(self)->Run(); }, this)) {
    return false;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return probe_ >= 0 || table_ != Table::kUnknown; });
  if (probe_ >= 0) {
    // A system that knows the call may still not have done it.
    table_ = IsSameFile(probe_, number) ? Table::kShared : Table::kOwn;
    apart_ = table_ == Table::kOwn;
  }
  if (apart_) {
    close(number);  // here; the thread has its own
  } else {
    in_programs_table_ = wire::OwnDescriptor(std::move(in_own_table_));
  }
  changed_.notify_all();
  changed_.wait(lock, [this] { return started_; });
  return true;
}

void SocketWatch::Run() {
  bool left = LeaveTable();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    started_ = true;
  }
  changed_.notify_all();
  Watch();
  // The other side may wait for it.
  if (left) in_own_table_.Reset();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  on_end_();
}

bool SocketWatch::LeaveTable() {
  int socket = in_own_table_.get();
  // Of no descriptor at all, yet.
  bool left = syscall(SYS_close_range, ~0U, ~0U, kUnshare) == 0;
  int probe = left ? wire::Duplicate(socket).Release() : -1;
  std::unique_lock<std::mutex> lock(mutex_);
  probe_ = probe;
  if (probe < 0) table_ = Table::kShared;
  changed_.notify_all();
  changed_.wait(lock, [this] { return table_ != Table::kUnknown; });
  if (probe < 0) return false;
  if (table_ == Table::kShared) {
    close(probe);
    return false;
  }
  unsigned kept = static_cast<unsigned>(socket);
  syscall(SYS_close_range, 0U, kept - 1, 0U);
  syscall(SYS_close_range, kept + 1, ~0U, 0U);
  return true;
}

void SocketWatch::Watch() {
  while (true) {
    int socket = apart_ ? in_own_table_.get() : in_programs_table_.get();
    pollfd wait{socket, POLLIN | POLLRDHUP, 0};
    if (socket < 0) return;
    int ready = poll(&wait, 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    if ((wait.revents & POLLIN) == 0 || !TakeWords()) return;
  }
}

bool SocketWatch::TakeWords() {
  int socket = apart_ ? in_own_table_.get() : in_programs_table_.get();
  if (socket < 0) return false;
  auto message = wire::ReceiveMessage(socket, std::chrono::milliseconds(0));
  if (!message) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  words_.assign(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size());
  changed_.notify_all();
  return true;
}

std::string SocketWatch::LastWords() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!started_) return {};
  changed_.wait_for(lock, kWordsPatience, [this] { return ended_ || !words_.empty(); });
  return words_;
}

}  // namespace longwire::shim
