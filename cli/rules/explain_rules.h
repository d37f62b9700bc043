// What the rules of a configuration do to a program, for people.
#pragma once

#include <string>

#include "proto/config.pb.h"
#include "proto/transport.pb.h"

namespace longwire::cli {

struct RulesQuestion {
  std::string program;
  std::string tenant;  // empty: each
  std::string module;  // empty: rules of all modules are shown
  std::string kernel;  // likewise
};

// The rules in force at a server, as it has answered, with how often they were used.
std::string ExplainRunning(const transport::InspectReply& reply, const RulesQuestion& question);
std::string ExplainRunningJson(const transport::InspectReply& reply, const RulesQuestion& question);

bool HasTenant(const config::Config& config, const std::string& tenant);
// A paragraph for each tenant.
std::string ExplainRules(const config::Config& config, const RulesQuestion& question);
// One object, with the rules of each tenant and what they do in words.
std::string ExplainRulesJson(const config::Config& config, const RulesQuestion& question);

}  // namespace longwire::cli
