// Events. Each record is a new version, at a position of a stream. An event that was never recorded
// counts as finished.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/handle_table.h"
#include "longwire/calls.h"

namespace longwire::shim {

struct SharedPiece;

struct Event {
  uint64_t table_index = 0;
  uint64_t id = 0;  // on the wire
  CUevent handle = nullptr;
  unsigned flags = 0;
  ClientSession* session = nullptr;  // of its context's server
  uint32_t context_number = 0;
  Context* context = nullptr;

  // Address in device memory, if the event is shared with other programs (shared_event.h).
  uint64_t shared_words = 0;
  bool opened = false;  // created by another program

  // Held while a record or wait is appended, so that versions are in the order of the log. Without
  // a rank: a graph's launch holds those of several events.
  base::Mutex mutex;
  uint64_t version LONGWIRE_GUARDED_BY(mutex) = 0;
  // Of the newest record: its stream, which is retained, its position, and the capture it is in.
  Stream* stream LONGWIRE_GUARDED_BY(mutex) = nullptr;
  uint64_t position LONGWIRE_GUARDED_BY(mutex) = 0;
  Capture* captured LONGWIRE_GUARDED_BY(mutex) = nullptr;
};

CUresult NewEvent(unsigned flags, CUevent* handle);  // in the current context
CUresult NewEvent(Context* context, unsigned flags, CUevent* handle);
// Opens another program's event in the current context.
CUresult NewSharedEvent(const SharedPiece& piece, CUevent* handle);
Event* FindEvent(CUevent handle);
CUresult DestroyEvent(CUevent handle);
CUresult RecordEvent(Event* event, Stream* stream, unsigned flags);
CUresult WaitEvent(Stream* stream, Event* event, unsigned flags);
// For what is no work of its stream here and natively is: where that stream is the legacy one, it
// stands between the work of blocking streams (measured: tests/apps/legacy_borders).
CUresult PlaceBorder(Stream* stream);
// Graphs record events and wait for them at every launch: the events of an executable, locked in
// the order of their addresses while the launch is appended to the log, which the analysis of locks
// cannot follow. Events that are destroyed are left out.
class LaunchedEvents {
 public:
  LaunchedEvents(const calls::GraphEvents& events,
                 calls::lwGraphLaunch* launch) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS;
  ~LaunchedEvents() LONGWIRE_NO_THREAD_SAFETY_ANALYSIS;
  LaunchedEvents(const LaunchedEvents&) = delete;
  LaunchedEvents& operator=(const LaunchedEvents&) = delete;
  // The launch was appended at `position`, which is the position of its records.
  void Recorded(Stream* stream, uint64_t position) LONGWIRE_NO_THREAD_SAFETY_ANALYSIS;

 private:
  std::vector<Event*> locked_;
  std::vector<Event*> recorded_;
};
// The handle of an event that a graph uses, by its number; null if it was destroyed.
CUevent HandleOfGraphEvent(uint64_t id);
// Registers the event, so that HandleOfGraphEvent finds it.
void NoteGraphEvent(const Event& event);
void ForgetGraphEvent(uint64_t id);

// Both refuse an event that was recorded in a capture (CUDA_ERROR_CAPTURED_EVENT, which breaks the
// capture), and any other where a capture forbids it.
CUresult QueryEvent(Event* event);
CUresult SynchronizeEvent(Event* event);
CUresult ElapsedTime(Event* start, Event* end, float* milliseconds);

}  // namespace longwire::shim
