#include "server/worker/tracing/spans.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "wire/record.h"

namespace longwire::worker {
namespace {

constexpr size_t kMaxNamed = size_t{1} << 20;

// The client's own calls about spans, and bytes whose call has a span of its own.
bool IsTold(CallId call) {
  return call != CallId::lwSpansMeasure && call != CallId::lwSpansRead &&
         call != CallId::lwRoundTrip && !CarriesBulkBytes(call);
}

// 0 for the thread that asks first, the log thread.
uint32_t NumberOfThread() {
  static std::atomic<uint32_t> threads{0};
  thread_local const uint32_t number = threads.fetch_add(1);
  return number;
}

uint64_t FunctionOf(const QueuedCall& call) {
  if (call.call != CallId::lwLaunch) return 0;
  calls::lwLaunch launch;
  wire::Reader reader(call.arguments);
  return launch.Decode(reader) == wire::WireResult::kOk ? launch.function : 0;
}

}  // namespace

uint64_t Spans::Now() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

void Spans::Measure(bool on) {
  on_.store(on, std::memory_order_relaxed);
  base::MutexLock lock(mutex_);
  for (auto& [position, open] : open_) GiveBack(open.span.context, open.begin);
  open_.clear();
  if (!on) waiting_.clear();
}

void Spans::Read(const QueuedCall& call) {
  const uint32_t thread = NumberOfThread();
  if (!IsTold(call.call)) return;
  base::MutexLock lock(mutex_);
  if (open_.size() >= kMaxOpen) {  // some of them were never issued
    lost_ += open_.size();
    for (auto& [position, open] : open_) GiveBack(open.span.context, open.begin);
    open_.clear();
  }
  Open& open = open_[call.position];
  open.span.position = call.position;
  open.span.call = static_cast<uint32_t>(call.call);
  open.span.thread = thread;
  open.span.device = -1;
  open.span.context = call.context;
  open.span.stream = call.stream;
  open.span.read = Now();
}

void Spans::Held(const QueuedCall& call) {
  base::MutexLock lock(mutex_);
  auto found = open_.find(call.position);
  if (found != open_.end() && found->second.span.held == 0) found->second.span.held = Now();
}

bool Spans::CanMeasure(Stream& stream) {
  if (stream.capturing || stream.context->failed != 0) return false;
  if (stream.kind != StreamKind::kLegacy) return true;
  // There the record itself would spoil a capture.
  base::MutexLock lock(stream.context->capture_mutex);
  return stream.context->captures == 0;
}

void Spans::Starts(Stream& stream, const QueuedCall& call) {
  CUevent begin = nullptr;
  {
    base::MutexLock lock(mutex_);
    auto found = open_.find(call.position);
    if (found == open_.end()) return;
    calls::CallSpan& span = found->second.span;
    span.called = Now();
    // What was issued in parts has begun with the first.
    if (call.begun() && span.begun != 0) return;
    span.begun = span.called;
    span.device = stream.context->device;
    span.context = stream.context->id;
    begin = found->second.begin;
  }
  if (!IsGated(call.call) || !CanMeasure(stream) || ClockOf(stream) == nullptr) return;
  if (begin == nullptr) begin = TakeEvent(stream.context->id);
  if (begin == nullptr) return;
  bool recorded = driver_.cuEventRecord(begin, stream.handle) == CUDA_SUCCESS;
  base::MutexLock lock(mutex_);
  auto found = open_.find(call.position);
  if (!recorded) GiveBack(stream.context->id, std::exchange(begin, nullptr));
  if (found != open_.end()) found->second.begin = begin;
}

void Spans::Issued(Stream& stream, const QueuedCall& call) {
  auto measured = std::make_shared<Measured>();
  {
    base::MutexLock lock(mutex_);
    auto found = open_.find(call.position);
    if (found == open_.end()) return;
    measured->span = found->second.span;
    measured->begin = found->second.begin;
    open_.erase(found);
  }
  measured->span.returned = Now();
  if (measured->span.begun == 0) {
    measured->span.begun = measured->span.called = measured->span.returned;
  }
  measured->span.function = FunctionOf(call);
  const uint32_t context = stream.context->id;
  if (measured->begin != nullptr) measured->end = TakeEvent(context);
  bool recorded = measured->end != nullptr &&
                  driver_.cuEventRecord(measured->end, stream.handle) == CUDA_SUCCESS;
  if (recorded) measured->clock = ClockOf(stream);
  base::MutexLock lock(mutex_);
  if (!recorded) {
    GiveBack(context, measured->begin);
    GiveBack(context, measured->end);
    return Keep(measured->span);
  }
  ++measured_;
  stream.actions.push_back([this, measured](bool good) { Finished(*measured, good); });
}

Spans::Place Spans::Mark(Stream& stream) {
  Place place;
  if (!CanMeasure(stream)) return place;
  auto clock = ClockOf(stream);
  place.event = clock == nullptr ? nullptr : TakeEvent(stream.context->id);
  if (place.event == nullptr) return place;
  place.issued = Now();
  if (driver_.cuEventRecord(place.event, stream.handle) == CUDA_SUCCESS) {
    place.clock = std::move(clock);
  } else {
    Unmark(stream, place);
  }
  return place;
}

void Spans::Unmark(const Stream& stream, const Place& place) {
  base::MutexLock lock(mutex_);
  GiveBack(stream.context->id, place.event);
}

void Spans::WhenReached(Stream& stream, const Place& place, std::function<void(uint64_t)> then) {
  const uint32_t context = stream.context->id;
  stream.actions.push_back([=, this, then = std::move(then)](bool good) {
    CUevent event = place.event;
    DeviceClock::Interval at;
    if (good && place.clock->Locate(event, event, place.issued, &Spans::Now, &at)) {
      then(at.started + at.error / 2);
      place.clock->Renew(&event);
    }
    base::MutexLock lock(mutex_);
    GiveBack(context, event);
  });
}

void Spans::WhenDone(Stream& stream, const Place& begin, const Place& end,
                     std::function<void(const DeviceClock::Interval&)> then) {
  const uint32_t context = stream.context->id;
  stream.actions.push_back([=, this, then = std::move(then)](bool good) {
    CUevent last = end.event;
    DeviceClock::Interval at;
    if (good && begin.clock->Locate(begin.event, last, begin.issued, &Spans::Now, &at)) {
      then(at);
      begin.clock->Renew(&last);
    }
    base::MutexLock lock(mutex_);
    GiveBack(context, begin.event);
    GiveBack(context, last);
  });
}

void Spans::Dropped(const QueuedCall& call) {
  base::MutexLock lock(mutex_);
  auto found = open_.find(call.position);
  if (found == open_.end()) return;
  GiveBack(found->second.span.context, found->second.begin);
  open_.erase(found);
}

void Spans::Ran(const QueuedCall& call, uint64_t begun) {
  if (!IsTold(call.call)) return;
  const uint32_t thread = NumberOfThread();
  base::MutexLock lock(mutex_);
  auto found = open_.find(call.position);
  if (found == open_.end()) return;
  calls::CallSpan span = found->second.span;
  open_.erase(found);
  span.thread = thread;
  span.begun = span.called = begun;
  span.returned = Now();
  Keep(span);
}

// On the completion thread, which alone uses the clocks but for their beginning.
void Spans::Finished(Measured& measured, bool good) {
  calls::CallSpan& span = measured.span;
  DeviceClock::Interval at;
  if (good && measured.clock->Locate(measured.begin, measured.end, span.begun, &Spans::Now, &at)) {
    span.started = at.started;
    span.ended = at.ended;
    span.error = at.error;
    measured.clock->Renew(&measured.end);
  }
  base::MutexLock lock(mutex_);
  --measured_;
  GiveBack(span.context, measured.begin);
  GiveBack(span.context, measured.end);
  Keep(span);
}

void Spans::Keep(const calls::CallSpan& span) {
  if (waiting_.size() >= kMaxWaiting) {
    ++lost_;
    return;
  }
  waiting_.push_back(span);
}

std::vector<uint64_t> Spans::Take(uint32_t most, calls::lwSpansRead::Reply* reply) {
  std::vector<uint64_t> unnamed;
  base::MutexLock lock(mutex_);
  reply->lost = lost_;
  for (most = std::min(most, kReadLimit); most != 0 && !waiting_.empty(); --most) {
    const calls::CallSpan& span = waiting_.front();
    bool is_new = span.function != 0 && named_.size() < kMaxNamed;
    if (is_new && named_.insert(span.function).second) unnamed.push_back(span.function);
    reply->spans.push_back(span);
    waiting_.pop_front();
  }
  reply->pending = measured_ + open_.size() + waiting_.size();
  return unnamed;
}

CUevent Spans::TakeEvent(uint32_t context) {
  {
    base::MutexLock lock(mutex_);
    auto& pool = events_[context];
    if (!pool.empty()) {
      CUevent event = pool.back();
      pool.pop_back();
      return event;
    }
    if (driver_events_ >= kMaxEvents) return nullptr;
    ++driver_events_;
  }
  CUevent event = nullptr;
  if (driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) return event;
  base::MutexLock lock(mutex_);
  --driver_events_;
  return nullptr;
}

void Spans::GiveBack(uint32_t context, CUevent event) {
  if (event == nullptr) return;
  auto pool = events_.find(context);
  if (pool != events_.end()) {
    pool->second.push_back(event);
  } else {
    --driver_events_;  // it has ended with its context
  }
}

std::shared_ptr<DeviceClock> Spans::ClockOf(const Stream& stream) {
  const uint32_t context = stream.context->id;
  {
    base::MutexLock lock(mutex_);
    auto found = clocks_.find(context);
    if (found != clocks_.end()) return found->second;
  }
  CUevent anchor = TakeEvent(context);
  if (anchor == nullptr) return nullptr;
  const uint64_t before = Now();
  bool recorded = driver_.cuEventRecord(anchor, stream.handle) == CUDA_SUCCESS;
  base::MutexLock lock(mutex_);
  if (!recorded) {
    GiveBack(context, anchor);
    return nullptr;
  }
  return clocks_[context] = std::make_shared<DeviceClock>(driver_, anchor, before);
}

void Spans::Forget(const Context& context) {
  std::vector<CUevent> events;
  {
    base::MutexLock lock(mutex_);
    events.swap(events_[context.id]);
    events_.erase(context.id);
    auto clock = clocks_.find(context.id);
    // Calls of the context may be finished on the completion thread just now.
    if (clock != clocks_.end()) events.push_back(clock->second->End());
    clocks_.erase(context.id);
    driver_events_ -= events.size();
  }
  for (CUevent event : events) driver_.cuEventDestroy_v2(event);
}

}  // namespace longwire::worker
