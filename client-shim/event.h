// Events: every record is a new version, at a place of a stream. An event that was never recorded
// counts as finished.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>

#include "client-shim/handle_table.h"
#include "client-shim/stream.h"

namespace longwire::shim {

struct SharedPiece;

struct Event {
  uint64_t table_index = 0;
  uint64_t id = 0;  // on the wire
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
CUresult QueryEvent(Event* event);
CUresult SynchronizeEvent(Event* event);
CUresult ElapsedTime(Event* start, Event* end, float* milliseconds);

}  // namespace longwire::shim
