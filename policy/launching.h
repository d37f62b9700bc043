// How a function is launched, by a policy's hook `launch`.
#pragma once

#include "policy/program.h"

namespace longwire::policy {

// Sets what the hook may answer to what is so without it.
void SetUnanswered(lw_launch* launch);
// True: the answer is there, and can be. False: there is none, and the answers are as at first; one
// that cannot be ends the policy.
bool AskLaunch(Program& program, lw_launch* launch);

}  // namespace longwire::policy
