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

// The context is current and has no work.
CUresult Events::MarkMoment() {
  LONGWIRE_TRY(driver_.cuEventCreate(&moment_, CU_EVENT_DEFAULT));
  LONGWIRE_TRY(driver_.cuEventRecord(moment_, nullptr));
  LONGWIRE_TRY(driver_.cuEventSynchronize(moment_));
  moment_nanos_ = Now();
  return CUDA_SUCCESS;
}

CUresult Events::Carry(std::vector<CarriedEvent>* carried, CarriedMoment* moment) {
  base::MutexLock lock(mutex_);
  LONGWIRE_TRY(MarkMoment());
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
    LONGWIRE_TRY(driver_.cuEventElapsedTime_v2(&milliseconds, version.handle, moment_));
    one.before_nanos = static_cast<uint64_t>(std::llround(milliseconds * kNanosPerMilli));
  }
  return CUDA_SUCCESS;
}

CUresult Events::Restore(const std::vector<CarriedEvent>& carried, const CarriedMoment& moment,
                         const HandleTable<Context>& contexts) {
  base::MutexLock lock(mutex_);
  LONGWIRE_TRY(MarkMoment());
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

// From the start to the moment, and from there to the end.
CUresult Events::ElapsedOverMove(const EventVersion& start, const EventVersion& end,
                                 float* milliseconds) {
  double sum = 0;
  const EventVersion* versions[2] = {&start, &end};
  for (int i = 0; i < 2; ++i) {
    const double sign = i == 0 ? 1 : -1;
    if (versions[i]->before_nanos) {
      sum += sign * static_cast<double>(*versions[i]->before_nanos) / kNanosPerMilli;
      continue;
    }
    float since = 0;
    LONGWIRE_TRY(driver_.cuEventElapsedTime_v2(&since, moment_, versions[i]->handle));
    sum -= sign * static_cast<double>(since);
  }
  *milliseconds = static_cast<float>(sum);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
