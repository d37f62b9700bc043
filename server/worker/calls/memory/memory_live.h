// Mirrored memory while work runs: one aligned word at a time (client-shim/mirror/live_exchange.h).
#pragma once

#include <memory>
#include <vector>

#include "server/worker/calls/call_context.h"
#include "server/worker/memory/mirrors.h"
#include "wire/page_delta.h"

namespace longwire::worker {

// What the program has changed: stored at once, as a kernel may be waiting for it. `runs`: the word
// alone. If the device has changed the word as well, the client gets a conflict.
CUresult PushWord(CallContext& context, const std::shared_ptr<Mirror>& mirror,
                  const std::vector<wire::DeltaRun>& runs);

}  // namespace longwire::worker
