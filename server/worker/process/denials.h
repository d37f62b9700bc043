// Which calls the operator's rules deny, but for launches and loads of modules, which are looked at
// where more is known of them.
#pragma once

#include <string>

#include "server/worker/process/session.h"
#include "server/worker/support/call_queue.h"

namespace longwire::worker {

// The name of the rule that denies the call; empty: none does. A copy counts by where its bytes
// are, whichever call of the client carries it: memory of the program is also what the device
// reaches by a mirror or as live memory. A node of a graph counts as what it does.
std::string RuleAgainst(WorkerSession& session, const QueuedCall& call);

}  // namespace longwire::worker
