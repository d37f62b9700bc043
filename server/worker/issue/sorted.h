// What some calls need beside being executed in their turn: bookkeeping in the log's order when
// they are sorted, and when they fall away because their context failed.
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
