#include "server/daemon/sessions/images.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <functional>

#include "base/poll_set.h"
#include "base/printable.h"
#include "base/reason.h"
#include "base/start_thread.h"
#include "server/rules/rule.h"
#include "wire/sha256.h"

namespace longwire::daemon {

using transport::Log;
using transport::LogLevel;

namespace {

constexpr uint64_t kLeastBytes = 24;

}  // namespace

Images::Images(const images::ImageStore::Options& options, OnLinked linked, OnAsked asked)
    : linked_(std::move(linked)),
      asked_(std::move(asked)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (options.folder.empty()) return;
  std::string sentence;
  store_ = images::ImageStore::Open(options, &sentence);
  if (store_ == nullptr) Log(LogLevel::kWarning, "module images are not cached: " + sentence);
}

// The sockets stay open: another daemon may go on with them.
Images::~Images() {
  eventfd_write(stop_.get(), 1);
  std::list<Worker> left;
  {
    base::MutexLock lock(mutex_);
    left.splice(left.end(), workers_);
  }
  for (Worker& worker : left) worker.thread.join();
}

std::vector<std::pair<std::string, wire::Digest>> Images::Newest(size_t most) {
  if (store_ == nullptr) return {};
  return store_->Newest(most);
}

std::string Images::Serve(uint64_t session, const std::string& tenant, const std::string& program,
                          wire::Descriptor control) {
  base::MutexLock lock(mutex_);
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    auto next = std::next(worker);
    if (worker->gone.load()) {
      worker->thread.join();
      workers_.erase(worker);
    }
    worker = next;
  }
  Worker& worker = workers_.emplace_back();
  worker.session = session;
  worker.tenant = tenant;
  worker.program = program;
  worker.control = std::move(control);
  if (base::StartThread(&worker.thread, [this, &worker] { Run(worker); })) return {};
  workers_.pop_back();
  return "no thread can answer its worker: " + base::ReasonOfNoThread(errno);
}

void Images::Run(Worker& worker) {
  bool closed = false;
  base::PollSet set;
  while (!closed) {
    set.Clear();
    base::PollSet::Entry control = set.Add(worker.control.get());
    base::PollSet::Entry stop = set.Add(stop_.get());
    if (set.Wait(std::chrono::milliseconds(-1)) < 0) continue;
    if (set.Ready(stop)) break;
    if (!set.Ready(control)) continue;
    auto message =
        wire::ReceiveMessage(worker.control.get(), std::chrono::milliseconds(0), &closed);
    if (!message || Answer(worker, *message)) continue;
    Log(LogLevel::kWarning, {.session = worker.session, .tenant = worker.tenant},
        "its worker sent a message that is not known here");
    break;
  }
  base::MutexLock lock(mutex_);
  worker.control.Reset();  // the rest stays until the next session comes
  worker.gone = true;
}

bool Images::Answer(Worker& worker, const wire::Message& message) {
  images::Find find;
  images::Keep keep;
  rules::Notice notice;
  links::Linked link;
  if (message::Unpack(message.bytes, &link) == wire::WireResult::kOk) {
    if (linked_) linked_(worker.session, worker.tenant, link.token);
    return true;
  }
  bridges::Ask ask;
  if (message::Unpack(message.bytes, &ask) == wire::WireResult::kOk) {
    if (asked_) asked_(worker.session, ask);
    return true;
  }
  launches::AskLaunch launch;
  if (message::Unpack(message.bytes, &launch) == wire::WireResult::kOk) {
    if (!launch_) return true;
    const auto answer = message::Pack(launch_(worker.session, worker.tenant, launch));
    // It goes on without an answer that it does not take.
    (void)wire::SendMessage(worker.control.get(), answer, {}, MSG_DONTWAIT);
    return true;
  }
  if (message::Unpack(message.bytes, &find) == wire::WireResult::kOk) return Answer(worker, find);
  if (message::Unpack(message.bytes, &notice) == wire::WireResult::kOk) {
    Log(LogLevel::kWarning, {.session = worker.session, .tenant = worker.tenant},
        "its worker says: " + base::Printable(notice.sentence));
    return true;
  }
  if (message::Unpack(message.bytes, &keep) != wire::WireResult::kOk ||
      message.descriptors.size() != 1) {
    return false;
  }
  TakeIn(worker, keep, message.descriptors[0]);
  return true;
}

bool Images::Answer(Worker& worker, const images::Find& find) {
  wire::Digest digest;
  if (!wire::ParseHexadecimal(find.digest, &digest)) return false;
  if (used_) used_(worker.tenant, worker.program, find.digest);
  images::Found found{find.request, false, store_ != nullptr};
  wire::Descriptor memory;
  if (store_ != nullptr && find.with_bytes) {
    memory = store_->Find(worker.tenant, digest, find.bytes);
    found.known = memory.valid();
  } else if (store_ != nullptr) {
    found.known = store_->Knows(worker.tenant, digest, find.bytes);
  }
  const int descriptor = memory.get();
  // The worker may have ended; it then does not need the answer.
  (void)wire::SendMessage(worker.control.get(), message::Pack(found),
                          {&descriptor, memory.valid() ? size_t{1} : size_t{0}});
  return true;
}

void Images::TakeIn(Worker& worker, const images::Keep& keep, const wire::Descriptor& memory) {
  wire::Digest digest;
  transport::LogSubject subject{.session = worker.session, .tenant = worker.tenant};
  // None is smaller: a text names its version and its target, a compiled image has a header.
  if (store_ == nullptr || keep.bytes < kLeastBytes) return;
  std::string why;
  auto kept = images::ImageStore::Kept::kRefused;
  if (wire::ParseHexadecimal(keep.digest, &digest)) {
    kept = store_->Keep(worker.tenant, digest, keep.bytes, memory, &why);
  }
  if (kept == images::ImageStore::Kept::kRefused) {
    Log(LogLevel::kWarning, subject, "a module image is not cached: its digest is wrong");
  }
  if (kept != images::ImageStore::Kept::kNoRoom) return;
  const size_t hash = std::hash<std::string>()(why);
  if (logged_.exchange(hash) == hash) return;
  Log(LogLevel::kWarning, subject,
      "a module image is not cached: " + why + "; further ones are not logged for that reason");
}

}  // namespace longwire::daemon
