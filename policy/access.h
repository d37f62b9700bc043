// What memory a hook reads and writes: fields of its structure and its own stack, at places that
// are known before it runs. The engine's verifier computes ranges of pointers and lets some through
// that it should not (one that was divided, for example). So nothing that it computes is relied on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "policy/hook_code.h"

namespace longwire::policy {

inline constexpr int64_t kStackBytes = 512;

// Where an instruction reads or writes: an offset into the structure, or from the stack's begin.
struct Place {
  bool on_stack = false;
  int64_t offset = 0;
};

// False with a sentence. Of code whose flow was checked (flow.h): all jumps go forward. `places`:
// those of all loads and stores, by instruction.
bool CheckAccess(const HookCode& code, size_t context_bytes, std::string* sentence,
                 std::map<uint32_t, Place>* places = nullptr);

}  // namespace longwire::policy
