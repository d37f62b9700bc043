// Events of several programs: eight numbers in device memory that all of them have mapped. The
// first one counts the records, the others say which records their streams got past. A record and
// everything that asks for the newest one therefore costs a round trip, which events of one program
// do not.
#pragma once

#include <cuda.h>

#include "client-shim/memory/sharing.h"
#include "client-shim/stream/event.h"

namespace longwire::shim {

// Makes the event one that can be shared, or one that stands for another program's.
CUresult MakeShared(Event* event);
CUresult OpenSharedEvent(Event* event, const SharedPiece& piece);
CUresult ShareEvent(Event* event, SharedPiece* piece);
void DropShared(Event* event);

CUresult RecordShared(Event* event, Stream* stream);
CUresult WaitShared(Stream* stream, Event* event);
CUresult QueryShared(Event* event);
CUresult SynchronizeShared(Event* event);

}  // namespace longwire::shim
