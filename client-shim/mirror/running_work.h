// When there is running work to look for changes beside it (live_exchange.h).
#pragma once

#include <chrono>
#include <cstdint>

#include "client-shim/mirror/mirror_table.h"
#include "client-shim/mirror/standstill.h"

namespace longwire::shim {

// Work that ends within this time is none of ours.
inline constexpr std::chrono::microseconds kMoment{1000};

Progress UnfinishedStreams();
// Until work has run for a moment, or there is something to look for behind it. False: the session
// has ended. *looked: the number of works behind which that was done last.
bool AwaitRunningWork(Mirrors& mirrors, uint64_t* looked);

}  // namespace longwire::shim
