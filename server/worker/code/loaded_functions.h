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

class LoadedFunctions {
 public:
  struct Uses {
    const DriverTable& driver;
    const HandleTable<Function>& functions;
    Charges& charges;
    CurrentContext& current_context;
    Helpers& helpers;
    wire::RingMemory& up;  // the log thread waits for it
  };
  explicit LoadedFunctions(Uses uses) : uses_(uses), found_(uses.functions) {}

  // The handle of the function's last launch, if that was in this context; else null.
  CUfunction LaunchedBefore(uint64_t function, uint32_t context);
  // The handle for launches in the context. kNotYet while a helper loads the function.
  CUresult Find(uint64_t function, const std::shared_ptr<Context>& context, CUfunction* handle);
  // Charges what the function's threads need of their own: the driver allocates it with the first
  // launch. Waits for the keeper.
  CUresult ChargeLocals(CUfunction function, const Context& context);

 private:
  // Loads the function into the context. Called on the loader's helper.
  void Load(Function& function, const Context& context);

  Uses uses_;
  FoundLately<Function> found_;
};

}  // namespace longwire::worker
