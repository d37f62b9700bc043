// What some calls need beside being executed in their turn: bookkeeping in the log's order when
// they are sorted, and when they fall away because their context failed.
#pragma once

#include "server/worker/objects.h"
#include "wire/result.h"

namespace longwire::worker {

class Session;

// kFatal for a record that cannot be decoded.
wire::WireResult AfterSorted(Session& session, const QueuedCall& call);
void AfterDropped(Session& session, const QueuedCall& call);

}  // namespace longwire::worker
