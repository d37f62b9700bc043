// Events: every record is a new version, at a place of a stream. An event that was never recorded
// counts as finished.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

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
  uint32_t context_number = 0;
  Context* context = nullptr;

  uint64_t shared_words =
      0;                // address in device memory, if other programs have it (shared_event.h)
  bool opened = false;  // another program made it

  std::mutex mutex;  // guards what follows; held while a record or wait is appended
  uint64_t version = 0;
  Stream* stream = nullptr;  // of the newest record; retained
  uint64_t position = 0;
  Capture* captured = nullptr;  // the newest record is inside this capture
};

CUresult NewEvent(unsigned flags, CUevent* handle);  // in the current context
CUresult NewEvent(Context* context, unsigned flags, CUevent* handle);
// One that stands for another program's, in the current context.
CUresult NewSharedEvent(const SharedPiece& piece, CUevent* handle);
Event* FindEvent(CUevent handle);
CUresult DestroyEvent(CUevent handle);
CUresult RecordEvent(Event* event, Stream* stream, unsigned flags);
CUresult WaitEvent(Stream* stream, Event* event, unsigned flags);
// Graphs record events and wait for them at every launch: the events of an executable, locked in
// one order while the launch is appended to the log. Events that are gone are left out.
class LaunchedEvents {
 public:
  LaunchedEvents(const calls::GraphEvents& events, calls::lwGraphLaunch* launch);
  ~LaunchedEvents();
  // The launch stands at `position` of the stream: that is where its records are.
  void Recorded(Stream* stream, uint64_t position);

 private:
  std::vector<Event*> locked_;
  std::vector<Event*> recorded_;
};
// The handle of an event that a graph uses, by its number; null for one that is gone.
CUevent HandleOfGraphEvent(uint64_t id);
// From now on the event may come back by its number.
void NoteGraphEvent(const Event& event);
void ForgetGraphEvent(uint64_t id);

// Both refuse an event that was recorded in a capture (CUDA_ERROR_CAPTURED_EVENT, which breaks the
// capture), and any other where a capture forbids it.
CUresult QueryEvent(Event* event);
CUresult SynchronizeEvent(Event* event);
CUresult ElapsedTime(Event* start, Event* end, float* milliseconds);

}  // namespace longwire::shim
