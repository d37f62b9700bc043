// A session that moves is rebuilt while its program runs, in rounds: its worker writes which calls
// have made what it is, the new worker runs them again, and the next round brings those that came
// meanwhile. What the last one leaves is run again while the session stands still.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/daemon/sessions/session.h"

namespace longwire::daemon {

// kNotNow: its program is in the midst of a call; what is lacking is done while it stands still.
// kFailed: what was written is no good. kRefused: nothing was written, as it cannot move.
enum class Round { kDone, kNotNow, kFailed, kRefused };

// Until little comes between two of them. False with a sentence, of one that failed; *rounds: how
// many were done.
bool RunRounds(const std::function<Round(std::string*)>& round, int* rounds, std::string* sentence);

// Calls of a session that have run again.
struct CallsAgain {
  uint64_t before = 0;  // while its program ran
  uint64_t still = 0;   // while it stood still
};
// For the log: a session is rebuilt once more, all of it while it stands still.
std::string VoidText(const std::string& why);
// For people, behind how long it stood still.
std::string TextOf(const CallsAgain& calls);

}  // namespace longwire::daemon
