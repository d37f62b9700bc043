// The source lines that clang -g puts into an object: sections .BTF and .BTF.ext.
#pragma once

#include <map>
#include <string>

#include "policy/elf.h"

namespace longwire::policy {

// Of the section: the line of each instruction with which one begins, "policy.c:12". Empty where
// the object has none, or none that can be read: lines are for messages only.
std::map<uint32_t, std::string> LinesOf(const ElfFile& elf, const std::string& section);

}  // namespace longwire::policy
