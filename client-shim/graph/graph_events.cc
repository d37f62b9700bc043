// Events that graphs record and wait for.
#include <algorithm>
#include <unordered_map>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/event.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct GraphEvents {
  base::Mutex mutex{base::ranks::kGraphEvents};
  std::unordered_map<uint64_t, CUevent> handles LONGWIRE_GUARDED_BY(mutex);  // by number
};

GraphEvents& TheGraphEvents() {
  static NeverDestroyed<GraphEvents> events;
  return *events;
}

Event* FindById(uint64_t id) {
  CUevent handle = HandleOfGraphEvent(id);
  Event* event = handle == nullptr ? nullptr : FindEvent(handle);
  return event != nullptr && event->id == id ? event : nullptr;
}

}  // namespace

void NoteGraphEvent(const Event& event) {
  GraphEvents& events = TheGraphEvents();
  base::MutexLock lock(events.mutex);
  events.handles[event.id] = event.handle;
}

void ForgetGraphEvent(uint64_t id) {
  GraphEvents& events = TheGraphEvents();
  base::MutexLock lock(events.mutex);
  events.handles.erase(id);
}

CUevent HandleOfGraphEvent(uint64_t id) {
  GraphEvents& events = TheGraphEvents();
  base::MutexLock lock(events.mutex);
  auto found = events.handles.find(id);
  return found == events.handles.end() ? nullptr : found->second;
}

LaunchedEvents::LaunchedEvents(const calls::GraphEvents& events, calls::lwGraphLaunch* launch) {
  std::vector<Event*> waited;
  for (uint64_t id : events.record) {
    if (Event* event = FindById(id)) recorded_.push_back(event);
  }
  for (uint64_t id : events.wait) {
    if (Event* event = FindById(id)) waited.push_back(event);
  }
  locked_ = recorded_;
  locked_.insert(locked_.end(), waited.begin(), waited.end());
  std::sort(locked_.begin(), locked_.end());
  locked_.erase(std::unique(locked_.begin(), locked_.end()), locked_.end());
  for (Event* event : locked_) event->mutex.Lock();
  // Waits are for what was recorded before the launch.
  for (Event* event : waited) {
    if (event->stream == nullptr || event->captured != nullptr) continue;
    launch->wait.push_back(event->id);
    launch->wait_version.push_back(event->version);
  }
  for (Event* event : recorded_) {
    launch->record.push_back(event->id);
    launch->record_version.push_back(++event->version);
  }
}

LaunchedEvents::~LaunchedEvents() {
  for (Event* event : locked_) event->mutex.Unlock();
}

void LaunchedEvents::Recorded(Stream* stream, uint64_t position) {
  for (Event* event : recorded_) {
    Retain(stream);
    if (event->stream != nullptr) Release(event->stream);
    event->stream = stream;
    event->position = position;
    event->captured = nullptr;
  }
}

}  // namespace longwire::shim
