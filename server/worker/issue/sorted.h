// Bookkeeping of events, graphs and transfers for calls that are sorted into queues, in the log's
// order, and for calls that are dropped because their context failed.
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
wire::WireResult AfterSorted(Bookkeeping bookkeeping, const QueuedCall& call);
void AfterDropped(Bookkeeping bookkeeping, const QueuedCall& call);

}  // namespace longwire::worker
