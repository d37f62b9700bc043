// What a log has next, for the operator's policies: how many kernels, and which.
#pragma once

#include <cstddef>
#include <span>

#include "server/protocol/swap.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"

namespace longwire::worker {

// Of what is there of the log and was not read. Changes nothing; looks at 64 records at most.
keeper::NextWork NextWorkIn(std::span<const std::byte> log, const HandleTable<Function>& functions);

}  // namespace longwire::worker
