// A link that is killed together with a program leaves a session at its server, and nobody is left
// to tell the server: the link's parent, its guard, becomes another link, which does.
#pragma once

namespace longwire::link {

// Forks. The process that returns is the link; the other one waits for its end without any thread
// or descriptor of its own, and if a signal ended the link, executes this program anew with
// `arguments` and --successor. `successor`: how many links of this line have died young already.
// Without memory for another process this one is the link, and has no guard.
void StandGuard(int successor, char** arguments);

}  // namespace longwire::link
