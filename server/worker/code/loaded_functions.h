// Looks up functions for launches: the driver's handle in the launch's context. A lazily loaded
// function is loaded on a helper at its first launch. Log thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "server/worker/support/driver.h"
#include "server/worker/support/handle_table.h"
#include "server/worker/support/objects.h"
#include "wire/rings/ring.h"

namespace longwire::worker {

class Charges;
class CurrentContext;
class Helpers;
class LaunchAnswers;
class SessionRules;
struct FunctionRules;

class LoadedFunctions {
 public:
  struct Uses {
    const DriverTable& driver;
    const HandleTable<Function>& functions;
    Charges& charges;
    CurrentContext& current_context;
    Helpers& helpers;
    wire::RingMemory& up;  // the log thread waits for it
    const SessionRules& rules;
    const LaunchAnswers& answers;
  };
  explicit LoadedFunctions(Uses uses) : uses_(uses), found_(uses.functions) {}

  // The function, with the handle of its last launch, if that was in this context; else null.
  // Valid until the next call.
  const Function* LaunchedBefore(uint64_t function, uint32_t context);
  // The handle for launches in the context. kNotYet while a helper loads the function.
  CUresult Find(uint64_t function, const std::shared_ptr<Context>& context, CUfunction* handle);
  // What rules say about the function, whose handle was found; null: nothing.
  const FunctionRules* RulesFor(uint64_t function);
  // To be called before LaunchedBefore: a function that rules or a policy are about is never found
  // there, so its launches go one by one. After a change of the rules none is, until Find has seen
  // it.
  void FollowRules();
  // Charges what the function's threads need of their own: the driver allocates it with the first
  // launch. Waits for the keeper.
  CUresult ChargeLocals(CUfunction function, const Context& context);

 private:
  // Loads the function into the context. Called on the loader's helper.
  void Load(Function& function, const Context& context);

  Uses uses_;
  FoundLately<Function> found_;
  uint32_t rules_version_ = 1;  // that the functions' `launched_in` are of
};

}  // namespace longwire::worker
