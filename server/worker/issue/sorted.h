// Bookkeeping that some calls need beside being issued: in the log's order when they are sorted
// into queues, and when they are dropped because their context failed.
#pragma once

#include "server/worker/support/objects.h"
#include "wire/result.h"

namespace longwire::worker {

class Events;
class Graphs;
class Transfers;

struct Bookkeeping {
  Events& events;
  Graphs& graphs;
  Transfers& transfers;
};

// kFatal for a record that cannot be decoded.
wire::WireResult AfterSorted(Bookkeeping books, const QueuedCall& call);
void AfterDropped(Bookkeeping books, const QueuedCall& call);

}  // namespace longwire::worker
