// Single instructions of eBPF as PTX.
#pragma once

#include <cstdint>
#include <string>

#include "policy/hook_code.h"

namespace longwire::probe {

std::string RegisterName(unsigned number);
// Of the two instructions that hold it.
uint64_t WideConstant(const policy::HookCode& code, uint32_t at);

// Of 64 bits; appends. False: there is no such operation.
bool ArithmeticText(const policy::Instruction& instruction, std::string* text);
// A conditional jump to the label; appends. False: there is no such condition.
bool JumpText(const policy::Instruction& instruction, const std::string& label, std::string* text);

}  // namespace longwire::probe
