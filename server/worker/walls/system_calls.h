// The system calls that a worker may make: a list for each branch of NVIDIA's driver, learned from
// it (docs/decisions/0054-walls-between-workers.md says how). All others are refused, with EPERM.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace longwire::worker {

enum class SystemCalls { kEnforce, kLog, kOff };
// "enforce", "log" or "off"; false for other words.
bool ParseSystemCalls(const std::string& word, SystemCalls* mode);

// The branch of the driver's kernel module, as 580; 0 without one, for the software device.
int DriverBranch();

// What is allowed with a driver of that branch, by number; one that is not known gets what any
// needs. Hot ones come first.
std::vector<int> AllowedCalls(int branch);

// For this process and all that it starts, for ever; before there are threads. With kLog all calls
// are let through, and a thread of this process writes a line to `log` for each one that is not on
// the list, the first time. False with errno where the kernel does not do that.
bool LimitSystemCalls(SystemCalls mode, int branch, int log);

}  // namespace longwire::worker
