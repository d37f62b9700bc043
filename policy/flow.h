// How control passes through a hook. The engine's verifier follows each path on its own, so their
// number is limited here; and it looks at a jump's target before it knows that there is one.
#pragma once

#include <string>

#include "policy/hook_code.h"

namespace longwire::policy {

// Instructions that the verifier may have to look at, over all paths: some tenths of a second.
inline constexpr uint64_t kMaxVisits = 1 << 18;

// False with a sentence: an instruction leads nowhere, jumps back, or is on too many paths; or it
// is a call that is none of a helper.
bool CheckFlow(const HookCode& code, std::string* sentence);

}  // namespace longwire::policy
