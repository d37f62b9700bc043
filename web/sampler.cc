#include "web/sampler.h"

#include <cerrno>

#include "base/reason.h"
#include "base/start_thread.h"

namespace longwire::web {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds kInterval{1};
// A page asks every second, when it is not paused.
constexpr std::chrono::seconds kLooksOn{5};

double Now() {
  auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

}  // namespace

bool Sampler::Start(std::string* sentence) {
  if (base::StartThread(&thread_, [this] { Loop(); })) return true;
  *sentence = base::ReasonOfNoThread(errno);
  return false;
}

void Sampler::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Sampler::Loop() {
  auto due = steady_clock::now();
  base::MutexLock lock(mutex_);
  while (!stopping_) {
    lock.Unlock();
    Ask();
    // A daemon that is slow is not asked more often for it.
    due = std::max(due + kInterval, steady_clock::now());
    lock.Lock();
    while (!stopping_ && steady_clock::now() < due) changed_.WaitUntil(lock, due);
  }
}

void Sampler::Ask() {
  transport::ControlRequest request;
  {
    base::MutexLock lock(mutex_);
    request.mutable_inspect()->set_pool(steady_clock::now() < pool_until_);
  }
  transport::ControlReply reply;
  std::string sentence;
  if (!daemon_.Ask(std::move(request), &reply, &sentence)) return Fail(Now(), sentence);
  Take(Now(), std::make_shared<transport::InspectReply>(std::move(*reply.mutable_inspect())));
}

void Sampler::Take(double seconds, Reply reply) {
  base::MutexLock lock(mutex_);
  Reply last = state_.now;
  const bool same = last != nullptr && last->daemon().pid() == reply->daemon().pid();
  events_.Compare(seconds, last.get(), *reply);
  history_.Add(static_cast<int64_t>(seconds), same ? last.get() : nullptr, *reply);
  latencies_.Add(static_cast<int64_t>(seconds), *reply, same);
  state_ = {same ? std::move(last) : nullptr, std::move(reply), seconds, ""};
}

void Sampler::Fail(double seconds, const std::string& problem) {
  base::MutexLock lock(mutex_);
  events_.Lost(seconds, problem);
  state_.problem = problem;
}

Sampler::State Sampler::Get() {
  base::MutexLock lock(mutex_);
  return state_;
}

void Sampler::WantPool() {
  base::MutexLock lock(mutex_);
  pool_until_ = steady_clock::now() + kLooksOn;
}

std::vector<LatencyRow> Sampler::Latencies() {
  base::MutexLock lock(mutex_);
  return latencies_.Rows();
}

std::vector<Event> Sampler::EventsAfter(uint64_t number, size_t most,
                                        const History::MaySee& may_see) {
  std::vector<Event> events;
  base::MutexLock lock(mutex_);
  const auto& all = events_.all();
  for (auto event = all.rbegin(); event != all.rend() && events.size() < most; ++event) {
    if (event->number <= number) break;
    if (event->general || may_see(event->tenant)) events.push_back(*event);
  }
  return {events.rbegin(), events.rend()};
}

void Sampler::WithHistory(const std::function<void(const History&)>& read) {
  base::MutexLock lock(mutex_);
  read(history_);
}

}  // namespace longwire::web
