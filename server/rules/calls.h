// The calls that a rule can deny, and those that they are between client and worker (proto/calls).
#pragma once

#include <span>
#include <string_view>

namespace longwire::rules {

struct DeniableCall {
  std::string_view name;       // all forms of it: cuLaunchKernel is cuLaunchKernelEx, too
  std::string_view wire_name;  // one entry for each
};

// Sorted by name. Memory is allocated in the client, from what it has leased: quotas limit that.
std::span<const DeniableCall> DeniableCalls();
bool IsDeniable(std::string_view name);
inline constexpr std::string_view kLaunchKernel = "cuLaunchKernel";

}  // namespace longwire::rules
