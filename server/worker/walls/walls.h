// What a worker does to itself before it loads the driver or reads a message: what an attacker who
// gets hold of it later cannot undo. It needs no privileges; what does is the starter's
// (server/starter).
#pragma once

#include <cstdint>

#include "server/worker/walls/system_calls.h"

namespace longwire::worker {

struct Walls {
  SystemCalls system_calls = SystemCalls::kEnforce;
  int64_t processes = 0;  // and threads of this user; 0: no limit
};

// A group of processes and a mask of signals of its own; other processes of this user cannot look
// into this one; no core dumps; no new privileges; it goes first when the host has no memory; only
// listed system calls. A sentence if something fails, which ends the process; else null.
const char* StandBehind(const Walls& walls);

}  // namespace longwire::worker
