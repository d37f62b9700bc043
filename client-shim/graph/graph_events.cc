// Events that graphs record and wait for.
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "client-shim/stream/capture.h"
#include "client-shim/stream/event.h"
#include "client-shim/support/never_destroyed.h"

namespace longwire::shim {
namespace {

struct Known {
  std::mutex mutex;
  std::unordered_map<uint64_t, CUevent> handles;  // by number
};

Known& TheKnown() {
  static NeverDestroyed<Known> known;
  return *known;
}

Event* FindById(uint64_t id) {
  CUevent handle = HandleOfGraphEvent(id);
  Event* event = handle == nullptr ? nullptr : FindEvent(handle);
  return event != nullptr && event->id == id ? event : nullptr;
}

}  // namespace

void NoteGraphEvent(const Event& event) {
  std::lock_guard<std::mutex> lock(TheKnown().mutex);
  TheKnown().handles[event.id] = event.handle;
}

void ForgetGraphEvent(uint64_t id) {
  std::lock_guard<std::mutex> lock(TheKnown().mutex);
  TheKnown().handles.erase(id);
}

CUevent HandleOfGraphEvent(uint64_t id) {
  std::lock_guard<std::mutex> lock(TheKnown().mutex);
  auto found = TheKnown().handles.find(id);
  return found == TheKnown().handles.end() ? nullptr : found->second;
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
  for (Event* event : locked_) event->mutex.lock();
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
  for (Event* event : locked_) event->mutex.unlock();
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
