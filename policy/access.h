// What memory a hook reads and writes: fields of its structure and its own stack, at places that
// are known before it runs. The engine's verifier computes ranges of pointers and lets some through
// that it should not (one that was divided, for example). So nothing that it computes is relied on.
#pragma once

#include <cstddef>
#include <string>

#include "policy/hook_code.h"

namespace longwire::policy {

inline constexpr int64_t kStackBytes = 512;

// False with a sentence. Of code whose flow was checked (flow.h): all jumps go forward.
bool CheckAccess(const HookCode& code, size_t context_bytes, std::string* sentence);

}  // namespace longwire::policy
