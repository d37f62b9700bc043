#include "server/worker/completion/events.h"

#include <sched.h>

#include <chrono>

#include "base/try.h"

namespace longwire::worker {
namespace {

// What the worker does not pass on: it never blocks on an event, and interprocess events are made
// of something else.
constexpr uint32_t kDriverFlags = CU_EVENT_DISABLE_TIMING;

// A processor that has other work may keep a software device's thread away for some milliseconds.
constexpr std::chrono::milliseconds kElapsedPatience{100};

}  // namespace

Event* Events::Find(uint64_t event) {
  auto found = events_.find(event);
  return found == events_.end() ? nullptr : &found->second;
}

CUresult Events::Create(uint64_t event, uint32_t flags) {
  base::MutexLock lock(mutex_);
  if (event == 0 || events_.size() >= HandleTable<Event>::kMaxHandles) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto [place, added] = events_.try_emplace(event);
  if (!added) return CUDA_ERROR_INVALID_HANDLE;
  place->second.id = event;
  place->second.flags = flags & kDriverFlags;
  return CUDA_SUCCESS;
}

CUresult Events::Destroy(uint64_t event) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (auto& [number, version] : found->versions) GiveBack(*found, version);
  events_.erase(event);
  return CUDA_SUCCESS;
}

void Events::DestroyAllOf(const Context& context) {
  base::MutexLock lock(mutex_);
  for (auto& [handle, weak] : fixed_) {
    auto fixed = weak.lock();
    if (fixed != nullptr && fixed->context == &context) fixed->dead = true;
  }
  for (auto& [id, event] : events_) {
    if (event.context.get() != &context) continue;
    for (auto& [number, version] : event.versions) GiveBack(event, version);
    event.versions.clear();
    event.context = nullptr;
    event.fixed = nullptr;
  }
  moments_.erase(context.id);
  for (auto& [key, handles] : pool_) {
    if (key.first != context.id) continue;
    for (CUevent handle : handles) driver_.cuEventDestroy_v2(handle);
    driver_events_ -= handles.size();
    handles.clear();
  }
}

void Events::RecordSorted(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return;
  found->versions.try_emplace(version);
  if (version > found->newest) found->newest = version;
}

void Events::WaitSorted(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return;
  auto place = found->versions.find(version);
  if (place == found->versions.end() && version > found->newest) {
    place = found->versions.try_emplace(version).first;
  }
  if (place != found->versions.end()) ++place->second.waits;
}

CUresult Events::TakeFromPool(Event& event, const Context& context, CUevent* handle) {
  auto& pool = pool_[{context.id, event.flags}];
  if (!pool.empty()) {
    *handle = pool.back();
    pool.pop_back();
    return CUDA_SUCCESS;
  }
  if (driver_events_ >= kMaxDriverEvents) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = driver_.cuEventCreate(handle, event.flags);
  if (result == CUDA_SUCCESS) ++driver_events_;
  return result;
}

void Events::GiveBack(Event& event, EventVersion& version) {
  bool fixed = event.fixed != nullptr && version.handle == event.fixed->handle;
  if (version.handle != nullptr && event.context != nullptr && !fixed) {
    pool_[{event.context->id, event.flags}].push_back(version.handle);
  }
  version.handle = nullptr;
}

void Events::DropOldVersions(Event& event) {
  for (auto place = event.versions.begin(); place != event.versions.end();) {
    auto& [number, version] = *place;
    if (number >= event.newest_issued) break;
    if (version.waits != 0 || !version.issued) {
      ++place;
      continue;
    }
    GiveBack(event, version);
    place = event.versions.erase(place);
  }
}

void Events::HasWaited(Event& event, Versions::iterator place) {
  if (place->second.waits != 0) --place->second.waits;
  if (place->second.passed && place->second.waits == 0) event.versions.erase(place);
  DropOldVersions(event);
}

CUresult Events::Record(uint64_t event, uint64_t version, uint32_t flags, Stream& stream) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  EventVersion& place = found->versions[version];
  if (place.issued) return CUDA_ERROR_INVALID_VALUE;
  // A record in another context than before: the event belongs to that one from now on.
  const std::shared_ptr<Context>& home = HomeOf(stream.context);
  if (found->context != home) {
    for (auto& [number, older] : found->versions) GiveBack(*found, older);
    found->context = home;
  }
  CUresult result = CUDA_SUCCESS;
  if (found->fixed != nullptr) {
    place.handle = found->fixed->handle;
  } else {
    result = TakeFromPool(*found, *home, &place.handle);
  }
  if (result == CUDA_SUCCESS) {
    bool external = (flags & CU_EVENT_RECORD_EXTERNAL) != 0;
    result = external ? driver_.cuEventRecordWithFlags(place.handle, stream.handle, flags)
                      : driver_.cuEventRecord(place.handle, stream.handle);
  }
  place.issued = true;
  place.captured = stream.capturing;
  place.failed = result != CUDA_SUCCESS;
  if (version > found->newest_issued) found->newest_issued = version;
  DropOldVersions(*found);
  return result;
}

CUresult Events::Pass(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto place = found->versions.find(version);
  if (place == found->versions.end()) return CUDA_SUCCESS;  // nobody waits for it
  if (place->second.issued || version <= found->newest) return CUDA_ERROR_INVALID_VALUE;
  place->second.issued = place->second.passed = true;
  return CUDA_SUCCESS;
}

void Events::RecordDropped(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return;
  EventVersion& place = found->versions[version];
  place.issued = true;
  place.failed = true;
}

CUresult Events::Wait(uint64_t event, uint64_t version, uint32_t flags, Stream& stream) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto place = found->versions.find(version);
  // Never recorded at this point of the log, or replaced by a newer record that is finished with:
  // waiting for it is a no-op.
  if (place == found->versions.end()) return CUDA_SUCCESS;
  if (!place->second.issued) return kNotYet;
  CUresult result = CUDA_SUCCESS;
  if (place->second.handle != nullptr && !place->second.failed) {
    result = driver_.cuStreamWaitEvent(stream.handle, place->second.handle, flags);
  }
  HasWaited(*found, place);
  return result;
}

void Events::WaitDropped(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return;
  auto place = found->versions.find(version);
  if (place != found->versions.end()) HasWaited(*found, place);
}

CUresult Events::Elapsed(uint64_t start, uint64_t start_version, uint64_t end, uint64_t end_version,
                         float* milliseconds) {
  base::MutexLock lock(mutex_);
  CUevent handles[2] = {};
  const EventVersion* found_versions[2] = {};
  const Event* found_events[2] = {};
  const uint64_t ids[2] = {start, end};
  const uint64_t versions[2] = {start_version, end_version};
  for (int i = 0; i < 2; ++i) {
    Event* found = Find(ids[i]);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto place = found->versions.find(versions[i]);
    if (place == found->versions.end()) return CUDA_ERROR_INVALID_HANDLE;
    if (!place->second.issued) return CUDA_ERROR_NOT_READY;
    if (place->second.handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    handles[i] = place->second.handle;
    found_versions[i] = &place->second;
    found_events[i] = found;
  }
  if (found_versions[0]->before_nanos || found_versions[1]->before_nanos) {
    double since[2] = {};
    if (found_events[0]->context != found_events[1]->context) return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < 2; ++i) {
      LONGWIRE_TRY(SinceMove(*found_events[i], *found_versions[i], &since[i]));
    }
    *milliseconds = static_cast<float>(since[1] - since[0]);
    return CUDA_SUCCESS;
  }
  // A record counts as finished when the work before it is; the record itself is a moment later.
  auto begun = std::chrono::steady_clock::now();
  while (true) {
    // Before the question, so that one comes after a moment in which this thread did not run.
    bool later = std::chrono::steady_clock::now() - begun > kElapsedPatience;
    CUresult result = driver_.cuEventElapsedTime_v2(milliseconds, handles[0], handles[1]);
    if (result != CUDA_ERROR_NOT_READY || later) return result;
    sched_yield();
  }
}

CUresult Events::Fix(uint64_t event, const std::shared_ptr<Context>& context,
                     std::shared_ptr<FixedEvent>* fixed) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr || context == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *fixed = found->fixed;
  if (found->fixed != nullptr) return CUDA_SUCCESS;
  std::erase_if(fixed_, [](auto& entry) { return entry.second.expired(); });
  if (fixed_.size() >= kMaxFixedEvents) return CUDA_ERROR_OUT_OF_MEMORY;
  CUevent handle = nullptr;
  auto newest = found->versions.find(found->newest_issued);
  if (newest != found->versions.end()) handle = newest->second.handle;
  if (handle != nullptr) {
    --driver_events_;
  } else if (CUresult result = driver_.cuEventCreate(&handle, found->flags);
             result != CUDA_SUCCESS) {
    return result;
  }
  if (found->context == nullptr) found->context = HomeOf(context);
  *fixed = std::make_shared<FixedEvent>();
  (*fixed)->driver = &driver_;
  (*fixed)->handle = handle;
  (*fixed)->event = event;
  (*fixed)->context = found->context.get();
  found->fixed = *fixed;
  fixed_[handle] = *fixed;
  return CUDA_SUCCESS;
}

std::shared_ptr<FixedEvent> Events::FindFixed(CUevent handle) {
  base::MutexLock lock(mutex_);
  auto found = fixed_.find(handle);
  return found == fixed_.end() ? nullptr : found->second.lock();
}

void Events::RecordedInGraph(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr || version == 0) return;
  EventVersion& place = found->versions[version];
  place.issued = true;
  place.failed = found->fixed == nullptr;
  place.handle = found->fixed == nullptr ? nullptr : found->fixed->handle;
  if (version > found->newest_issued) found->newest_issued = version;
  DropOldVersions(*found);
}

bool Events::IsIssued(uint64_t event, uint64_t version) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return true;
  auto place = found->versions.find(version);
  return place == found->versions.end() || place->second.issued;
}

CUevent Events::Newest(uint64_t event) {
  base::MutexLock lock(mutex_);
  Event* found = Find(event);
  if (found == nullptr) return nullptr;
  auto place = found->versions.find(found->newest_issued);
  return place == found->versions.end() ? nullptr : place->second.handle;
}

}  // namespace longwire::worker
