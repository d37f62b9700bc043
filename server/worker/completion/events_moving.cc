// Events of a session that moves. Their records are finished; what is left of them is when they
// were: before the moment at which both workers recorded an event of their own.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/try.h"
#include "server/worker/completion/events.h"

namespace longwire::worker {
namespace {

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

uint64_t SystemNow() {
  return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

constexpr double kNanosPerMilli = 1e6;
constexpr uint64_t kSameClock = 1'000'000'000;  // what two clocks may differ by, in nanoseconds

uint64_t Past(uint64_t before, uint64_t now) { return now - std::min(before, now); }

}  // namespace

uint64_t PauseBetween(const CarriedMoment& before, const CarriedMoment& now) {
  const uint64_t steady = Past(before.steady, now.steady);
  const uint64_t system = Past(before.system, now.system);
  const uint64_t apart = std::max(steady, system) - std::min(steady, system);
  return now.steady >= before.steady && apart < kSameClock ? steady : system;
}

// The contexts have no work.
CUresult Events::MarkMoments(const std::vector<std::shared_ptr<Context>>& contexts,
                             const Enter& enter) {
  for (const auto& context : contexts) {
    if (context == nullptr || moments_.contains(context->id)) continue;
    LONGWIRE_TRY(enter(*context));
    Moment& moment = moments_[context->id];
    LONGWIRE_TRY(driver_.cuEventCreate(&moment.event, CU_EVENT_DEFAULT));
    LONGWIRE_TRY(driver_.cuEventRecord(moment.event, nullptr));
    LONGWIRE_TRY(driver_.cuEventSynchronize(moment.event));
    moment.nanos = Now();
  }
  moment_nanos_ = Now();
  return CUDA_SUCCESS;
}

CUresult Events::Carry(std::vector<CarriedEvent>* carried, CarriedMoment* moment,
                       const Enter& enter) {
  base::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Context>> contexts;
  for (const auto& [id, event] : events_) contexts.push_back(event.context);
  // Those of an earlier attempt; where the session came from, other ones were compared.
  for (auto& [context, old] : moments_) driver_.cuEventDestroy_v2(old.event);
  moments_.clear();
  LONGWIRE_TRY(MarkMoments(contexts, enter));
  *moment = {moment_nanos_, SystemNow()};
  for (const auto& [id, event] : events_) {
    CarriedEvent& one = carried->emplace_back(CarriedEvent{id, event.newest, event.newest_issued});
    if (event.newest_issued != event.newest || event.versions.size() > 1) {
      return CUDA_ERROR_NOT_READY;
    }
    auto newest = event.versions.find(event.newest_issued);
    if (newest == event.versions.end()) {
      if (!event.versions.empty()) return CUDA_ERROR_NOT_READY;
      continue;
    }
    const EventVersion& version = newest->second;
    if (!version.issued || version.failed || version.waits != 0) return CUDA_ERROR_NOT_READY;
    if (version.handle == nullptr || event.context == nullptr) return CUDA_ERROR_NOT_READY;
    one.context = event.context->id;
    one.captured = version.captured;
    if (one.captured || (event.flags & CU_EVENT_DISABLE_TIMING) != 0) continue;
    one.timed = true;
    if (version.before_nanos) {
      one.before_nanos = *version.before_nanos + (moment_nanos_ - restored_nanos_);
      continue;
    }
    float milliseconds = 0;
    const Moment& then = moments_[one.context];
    LONGWIRE_TRY(driver_.cuEventElapsedTime_v2(&milliseconds, version.handle, then.event));
    one.before_nanos = static_cast<uint64_t>(std::llround(milliseconds * kNanosPerMilli)) +
                       (moment_nanos_ - then.nanos);
  }
  return CUDA_SUCCESS;
}

CUresult Events::Restore(const std::vector<CarriedEvent>& carried, const CarriedMoment& moment,
                         const HandleTable<Context>& contexts, const Enter& enter) {
  base::MutexLock lock(mutex_);
  LONGWIRE_TRY(MarkMoments(contexts.All(), enter));
  restored_nanos_ = moment_nanos_;
  const uint64_t pause = PauseBetween(moment, {moment_nanos_, SystemNow()});
  for (const CarriedEvent& one : carried) {
    Event* event = Find(one.event);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    event->newest = one.newest;
    event->newest_issued = one.newest_issued;
    if (one.context == 0) continue;
    const auto context = contexts.Find(one.context);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    // What captures have recorded is there already.
    if (one.captured) {
      if (event->context != context || !event->versions.contains(one.newest_issued)) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      DropOldVersions(*event);
      continue;
    }
    for (auto& [number, older] : event->versions) GiveBack(*event, older);
    event->versions.clear();
    event->context = context;
    LONGWIRE_TRY(enter(*context));
    EventVersion& version = event->versions[one.newest_issued];
    version.issued = true;
    // Recorded again, so that whoever waits for it or asks finds it finished.
    if (event->fixed != nullptr) {
      version.handle = event->fixed->handle;
    } else {
      LONGWIRE_TRY(TakeFromPool(*event, *event->context, &version.handle));
    }
    LONGWIRE_TRY(driver_.cuEventRecord(version.handle, nullptr));
    LONGWIRE_TRY(driver_.cuEventSynchronize(version.handle));
    if (one.timed) version.before_nanos = one.before_nanos + pause;
  }
  return CUDA_SUCCESS;
}

// Milliseconds from the moment at which the session came here; negative before it.
CUresult Events::SinceMove(const Event& event, const EventVersion& version, double* milliseconds) {
  if (version.before_nanos) {
    *milliseconds = -static_cast<double>(*version.before_nanos) / kNanosPerMilli;
    return CUDA_SUCCESS;
  }
  auto then = event.context == nullptr ? moments_.end() : moments_.find(event.context->id);
  if (then == moments_.end()) return CUDA_ERROR_INVALID_HANDLE;
  float since = 0;
  LONGWIRE_TRY(driver_.cuEventElapsedTime_v2(&since, then->second.event, version.handle));
  const auto apart =
      static_cast<double>(static_cast<int64_t>(then->second.nanos - restored_nanos_));
  *milliseconds = static_cast<double>(since) + apart / kNanosPerMilli;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
