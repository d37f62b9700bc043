// Mirrored memory while work runs: one aligned word at a time, or all words where each counts for
// itself (client-shim/mirror/live_exchange.h).
#pragma once

#include <memory>
#include <vector>

#include "server/worker/calls/call_context.h"
#include "server/worker/memory/mirrors.h"
#include "wire/page_delta.h"

namespace longwire::worker {

// What the program has changed: stored at once, as a kernel may be waiting for it. `runs`: words,
// each of which counts for itself; they are stored in descending order of their addresses. If the
// device has changed one of them as well, the client gets a conflict.
CUresult PushWords(CallContext& context, const std::shared_ptr<Mirror>& mirror,
                   const std::shared_ptr<std::vector<wire::DeltaRun>>& runs);

}  // namespace longwire::worker
