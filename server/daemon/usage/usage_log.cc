#include "server/daemon/usage/usage_log.h"

#include <algorithm>

#include "base/start_thread.h"
#include "link/transport/log.h"

namespace longwire::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using transport::Log;
using transport::LogLevel;

// A warden keeps the last 2,048 events of a device (keeper::kEventsKept).
constexpr milliseconds kInterval{1000};
// Until the last events of a session have come from keeper and warden.
constexpr milliseconds kSettle{300};
// Many sessions that end one after another do not make the warden answer for each.
constexpr milliseconds kShortestLook{100};
// More records do not wait: a file system that hangs shall not take memory.
constexpr size_t kMaxWaiting = 8192;
constexpr size_t kRecent = 64;  // a few KiB of each reply, and more than end in a second

}  // namespace

uint64_t UtcNow() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

UsageLog::UsageLog(std::string file, uint64_t limit, Source source)
    : file_(std::move(file), limit), source_(std::move(source)) {}

void UsageLog::Stop() {
  {
    base::MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void UsageLog::Start() {
  if (base::StartThread(&thread_, [this] { Loop(); })) return;
  Log(LogLevel::kError, "no thread can be started: no usage of sessions is recorded");
}

void UsageLog::Opened(uint64_t session, std::vector<int32_t> devices, uint64_t opened) {
  {
    base::MutexLock lock(mutex_);
    meter_.Begin(session, opened);
    sessions_[session] = {std::move(devices)};
  }
  changed_.NotifyAll();
}

void UsageLog::GoesOn(uint64_t session, uint64_t time) {
  base::MutexLock lock(mutex_);
  auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  meter_.BeginAt(session, time);
  found->second.counts_from = time;
}

void UsageLog::Forget(uint64_t session) {
  base::MutexLock lock(mutex_);
  auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.ended) return;
  meter_.Take(session, 0);
  sessions_.erase(found);
}

void UsageLog::Ended(UsageRecord record) {
  {
    base::MutexLock lock(mutex_);
    meter_.Stop(record.session, record.ended);
    auto known = sessions_.find(record.session);
    if (known != sessions_.end()) {
      known->second.ended = true;
      record.opened = std::max(record.opened, known->second.counts_from);
    }
    recent_.push_back(record);
    if (recent_.size() > kRecent) recent_.pop_front();
    if (endings_.size() < kMaxWaiting) {
      endings_.push_back({std::move(record), steady_clock::now() + kSettle});
    } else {
      meter_.Take(record.session, record.ended);
      sessions_.erase(record.session);
      ++dropped_;
    }
  }
  changed_.NotifyAll();
}

std::vector<UsageRecord> UsageLog::Recent() const {
  base::MutexLock lock(mutex_);
  return {recent_.begin(), recent_.end()};
}

void UsageLog::Loop() {
  base::MutexLock lock(mutex_);
  auto looked = steady_clock::now() - kInterval;
  while (true) {
    while (!ending_ && endings_.empty() && sessions_.empty()) changed_.Wait(lock);
    auto due = looked + kInterval;
    if (!endings_.empty()) {
      due = std::min(due, std::max(endings_.front().due, looked + kShortestLook));
    }
    if (!ending_ && steady_clock::now() < due) {
      changed_.WaitUntil(lock, due);
      continue;
    }
    const bool end = ending_;
    lock.Unlock();
    // A daemon that ends does not wait for a warden that has not answered before.
    const bool measures = !end || !silent_;
    if (measures) Measure();
    WriteDue(end, measures);
    looked = steady_clock::now();
    lock.Lock();
    if (end) return;
  }
}

std::set<int32_t> UsageLog::Devices() {
  base::MutexLock lock(mutex_);
  std::set<int32_t> devices;
  for (const auto& [id, session] : sessions_) {
    devices.insert(session.devices.begin(), session.devices.end());
  }
  return devices;
}

// All events that there are, then what is leased, then whether events came in between: if none
// did, the two must agree.
void UsageLog::Measure() {
  if (anew_.exchange(false)) cursors_.clear();
  const std::set<int32_t> devices = Devices();
  if (devices.empty()) return;
  for (int32_t device : devices) MeasureDevice(device, &cursors_[device]);
  auto leased = source_.leased();
  const uint64_t now = UtcNow();
  silent_ = !leased;
  if (silent_) return;
  for (int32_t device : devices) {
    uint64_t& cursor = cursors_[device];
    const uint64_t before = cursor;
    MeasureDevice(device, &cursor);
    if (cursor != before) continue;
    base::MutexLock lock(mutex_);
    meter_.Compare(device, (*leased)[device], now);
  }
}

void UsageLog::MeasureDevice(int32_t device, uint64_t* cursor) {
  const std::vector<keeper::MemoryEvent> events = source_.events(device, *cursor);
  if (events.empty()) return;
  base::MutexLock lock(mutex_);
  meter_.Apply(device, events);
  *cursor = events.back().number;
}

void UsageLog::WriteDue(bool all, bool measured) {
  uint64_t dropped = 0;
  while (true) {
    UsageRecord record;
    {
      base::MutexLock lock(mutex_);
      dropped += std::exchange(dropped_, 0);
      if (endings_.empty() || (!all && endings_.front().due > steady_clock::now())) break;
      const bool unsettled = endings_.front().due > steady_clock::now();
      record = std::move(endings_.front().record);
      endings_.pop_front();
      if (sessions_.erase(record.session) != 0) {
        const MemoryMeter::Reading reading = meter_.Take(record.session, record.ended);
        record.memory_byte_hours = reading.byte_hours;
        record.memory_estimated = reading.estimated || (unsettled && !measured);
      }
    }
    Write(std::move(record));
  }
  if (dropped == 0) return;
  Log(LogLevel::kError, std::to_string(dropped) + " records of usage were lost: " + file_.path() +
                            " is too slow; see that its file system answers");
}

void UsageLog::Write(UsageRecord record) {
  const transport::LogFields fields = UsageFields(record);
  Log(LogLevel::kInfo,
      {.session = record.session, .tenant = record.tenant, .peer = record.peer, .fields = &fields},
      UsageSentence(record));
  std::string sentence;
  if (file_.Append(JsonLine(record), &sentence)) {
    if (lost_ == 0) return;
    Log(LogLevel::kWarning, file_.path() + " can be written again; it lacks " +
                                std::to_string(std::exchange(lost_, 0)) +
                                " records of usage, which are in this log");
    return;
  }
  if (lost_++ != 0) return;
  Log(LogLevel::kError, "records of usage are in this log only: " + sentence +
                            "; make room there, or set usage: {file: …}");
}

}  // namespace longwire::daemon
