// eBPF to PTX. The code was checked (policy/flow.h, policy/access.h): all jumps go forward, and
// what it reads and writes is known. So the stack becomes registers, and the structure's fields
// are computed where they are read.
#pragma once

#include <map>
#include <span>
#include <string>

#include "policy/access.h"
#include "policy/hook_code.h"
#include "policy/object.h"
#include "probe/probe.h"

namespace longwire::probe {

// False with a sentence that names function and line.
bool Translate(const policy::HookCode& code, const std::map<uint32_t, policy::Place>& places,
               std::span<const policy::MapShape> maps, Probe* probe, std::string* sentence);

}  // namespace longwire::probe
