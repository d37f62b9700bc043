// The configuration's rules for one tenant and program, as a worker gets them.
#pragma once

#include <string>

#include "proto/config.pb.h"
#include "server/rules/rule.h"

namespace longwire::rules {

// The configuration is one that config::Check has found right. The tenant may be unknown.
RuleList RulesOf(const config::Config& config, const std::string& tenant,
                 const std::string& program);
// "'no-uploads'", or "2 of rules".
std::string NameOf(const config::Rule& rule, int index, const std::string& list);

}  // namespace longwire::rules
