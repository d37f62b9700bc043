// Which calls of a journal leave nothing any more: those about events, streams, captured graphs and
// executables that were destroyed, and changes of executables that later ones have replaced. A
// program that runs for days makes such objects all the time.
//
// Left alone is whatever might be missed: objects that calls not listed here may have used, graphs
// that are built node by node (their nodes' numbers are counted on), and what was captured in any
// way but plainly.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "server/worker/support/journal_entry.h"

namespace longwire::worker {

// Their positions. Only calls from `first` on, and before the first one without an answer.
std::vector<uint64_t> Superseded(const std::map<uint64_t, JournalEntry>& entries, uint64_t first);

}  // namespace longwire::worker
