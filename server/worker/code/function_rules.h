// What the session's rules say about one function: decided once, and kept with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/rules/decide.h"
#include "server/statistics/page.h"
#include "server/worker/support/driver.h"

namespace longwire::worker {

class Memory;
class SessionRules;
struct Function;

struct FunctionRules {
  rules::LaunchDecision decision;
  std::vector<CUlaunchAttribute> attributes;  // that launches get
  // Where launches are counted for each of the rules; empty: nowhere.
  std::shared_ptr<statistics::Page> page;
  std::vector<std::atomic<uint64_t>*> counters;

  void Count() const {
    for (std::atomic<uint64_t>* counter : counters) statistics::Add(*counter, 1);
  }
  std::vector<uint32_t> pointers;  // offsets of the arguments of a pointer's size; if validated
};

// Null if no rule is about the function. Calls the driver the first time. A context must be
// current. Log thread only.
const FunctionRules* RulesOf(const DriverTable& driver, const SessionRules& rules,
                             Function& function);

// What launches get that are changed so. A context must be current.
std::vector<CUlaunchAttribute> AttributesOf(const DriverTable& driver,
                                            const rules::LaunchChange& change);

// Why an argument of the launch cannot be a pointer into memory that is there: a sentence with
// kernel, argument, address and the nearest memory; empty if nothing is wrong.
std::string WrongArgument(Memory& memory, const Function& function, const FunctionRules& rules,
                          std::span<const std::byte> parameters);
// The same of a copy's side.
std::string WrongRange(Memory& memory, const std::string& what, uint64_t address, uint64_t bytes);

}  // namespace longwire::worker
