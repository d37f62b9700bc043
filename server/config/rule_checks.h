// What the values of one rule may be together.
#pragma once

#include <functional>
#include <string>

#include "proto/config.pb.h"

namespace longwire::config {

// `add` gets the key within the rule (empty: the rule) and a sentence, for each problem.
using AddRuleProblem = std::function<void(const std::string& key, const std::string& sentence)>;
void CheckRule(const Rule& rule, const AddRuleProblem& add);

}  // namespace longwire::config
