// A scheduler's policy whose answers a loaded policy gives. Where that has no opinion or has ended,
// what is built in decides.
#pragma once

#include <memory>

#include "policy/program.h"
#include "scheduler/policy.h"

namespace longwire::policy {

std::unique_ptr<scheduler::Policy> MakeAdvised(std::unique_ptr<scheduler::Policy> built_in,
                                               std::shared_ptr<Program> program);

}  // namespace longwire::policy
