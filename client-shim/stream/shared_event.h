// Events that several programs share. An event is eight numbers in device memory that all of them
// have mapped: the first counts the records, and the others hold the records that streams have
// passed. So a record, a wait and a query each cost a round trip, unlike those of other events.
#pragma once

#include <cuda.h>

#include "client-shim/memory/sharing.h"
#include "client-shim/stream/event.h"

namespace longwire::shim {

// Makes the event shareable, or opens another program's.
CUresult MakeShared(Event* event);
CUresult OpenSharedEvent(Event* event, const SharedPiece& piece);
CUresult ShareEvent(Event* event, SharedPiece* piece);
void DropShared(Event* event);

CUresult RecordShared(Event* event, Stream* stream);
CUresult WaitShared(Stream* stream, Event* event);
CUresult QueryShared(Event* event);
CUresult SynchronizeShared(Event* event);

}  // namespace longwire::shim
