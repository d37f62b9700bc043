// What calls that copy through staging share.
#pragma once

#include <cstddef>

#include "server/worker/calls/call_context.h"
#include "server/worker/transfer/staging.h"

namespace longwire::worker {

// A staging block for the call's stream, or false: the stream tries again when some is free.
bool TakeStaging(CallContext& context, size_t bytes, StagingBlock* block);

}  // namespace longwire::worker
