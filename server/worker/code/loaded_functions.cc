#include "server/worker/code/loaded_functions.h"

#include <algorithm>

#include "server/worker/code/function_rules.h"
#include "server/worker/code/launch_answers.h"
#include "server/worker/code/session_rules.h"
#include "server/worker/memory/array_bytes.h"
#include "server/worker/memory/charges.h"
#include "server/worker/support/current_context.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {

const Function* LoadedFunctions::LaunchedBefore(uint64_t function, uint32_t context) {
  const std::shared_ptr<Function>& found = found_.Find(function);
  return found != nullptr && found->launched_in == context ? found.get() : nullptr;
}

CUresult LoadedFunctions::Find(uint64_t id, const std::shared_ptr<Context>& context,
                               CUfunction* handle) {
  const std::shared_ptr<Function>& function = found_.Find(id);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FollowRules();
  uint32_t in = context->id;
  *handle = function->launched;
  if (function->launched_in == in) return CUDA_SUCCESS;
  base::MutexLock lock(function->mutex);
  LoadedFunction& loaded = function->loaded[in];
  if (loaded.state == LoadState::kLoaded) {
    *handle = loaded.handle;
    if (loaded.result == CUDA_ERROR_OUT_OF_MEMORY) {  // the next launch tries it again
      loaded.state = LoadState::kUnloaded;
      return loaded.result;
    }
    if (loaded.result != CUDA_SUCCESS) return loaded.result;
    if (uses_.rules.any() && (RulesOf(uses_.driver, uses_.rules, *function) != nullptr ||
                              !uses_.answers.LeavesAlone(*function))) {
      return CUDA_SUCCESS;
    }
    function->launched_in = in;
    function->launched = loaded.handle;
    return CUDA_SUCCESS;
  }
  if (loaded.state == LoadState::kUnloaded) {
    loaded.state = LoadState::kLoading;
    uses_.helpers.Post(Helpers::kLoaderThread,
                       [this, function, context] { Load(*function, *context); });
  }
  return kNotYet;
}

const FunctionRules* LoadedFunctions::RulesFor(uint64_t id) {
  const std::shared_ptr<Function>& function = found_.Find(id);
  return function == nullptr ? nullptr : RulesOf(uses_.driver, uses_.rules, *function);
}

void LoadedFunctions::FollowRules() {
  const uint32_t version = uses_.rules.version();
  if (version == rules_version_) [[likely]]
    return;
  rules_version_ = version;
  for (const std::shared_ptr<Function>& function : uses_.functions.All()) {
    function->launched_in = 0;
    function->launched = nullptr;
  }
}

void LoadedFunctions::Load(Function& function, const Context& context) {
  const DriverTable& driver = uses_.driver;
  CUresult result = uses_.current_context.Set(context);
  CUfunction handle = function.function;
  if (result == CUDA_SUCCESS && handle == nullptr) {
    result = driver.cuKernelGetFunction(&handle, function.kernel);
  }
  if (result == CUDA_SUCCESS) {
    CUresult loaded = driver.cuFuncLoad(handle);
    if (loaded != CUDA_ERROR_NOT_SUPPORTED) result = loaded;
  }
  if (result == CUDA_SUCCESS) result = ChargeLocals(handle, context);
  {
    base::MutexLock lock(function.mutex);
    function.loaded[context.id] = {LoadState::kLoaded, handle, result};
  }
  uses_.up.PokeConsumer();
}

CUresult LoadedFunctions::ChargeLocals(CUfunction function, const Context& context) {
  int bytes = 0;
  CUresult result =
      uses_.driver.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
  if (result != CUDA_SUCCESS || bytes <= 0) return CUDA_SUCCESS;
  uint64_t wanted = LocalBytes(uses_.driver, context.driver_device, static_cast<uint64_t>(bytes));
  // Of the driver's context, which can have several numbers of the session.
  const Charges::Key key{Charges::Kind::kLocals, reinterpret_cast<uint64_t>(context.handle), 0};
  Charge charge;
  result = uses_.charges.Take(context.device, wanted - std::min(wanted, uses_.charges.Kept(key)),
                              &charge);
  if (result == CUDA_SUCCESS) uses_.charges.Keep(key, std::move(charge));
  return result;
}

}  // namespace longwire::worker
