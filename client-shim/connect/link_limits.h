// What the program that starts a link would pass on to it: limits, nice value, cgroup. A link
// serves other programs, too, so it leaves behind what a process may leave behind. What it may not,
// hard limits of a user without privileges above all, it has in common with the programs that it
// serves: only those whose limits are the same find it (link_place.h).
#pragma once

#include <string>

namespace longwire::shim {

// For the process that becomes a link: raises each limit as far as it may, and resets the nice
// value and the scheduling of processor and disk. Makes only system calls, so that it may be called
// between fork and exec.
void LeaveLimits();

// Where the program belongs: its cgroup, its container. Who ends all processes there ends their
// link, too, and no other.
std::string Belonging();

// What a link started by this program could not leave behind; empty if it is not limited.
struct LastingLimits {
  std::string hard;   // hard limits
  std::string speed;  // nice value and scheduling policy
};
LastingLimits FindLastingLimits();

}  // namespace longwire::shim
