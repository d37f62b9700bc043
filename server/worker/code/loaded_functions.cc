#include "server/worker/code/loaded_functions.h"

#include "server/worker/support/current_context.h"
#include "server/worker/support/helpers.h"

namespace longwire::worker {

CUfunction LoadedFunctions::LaunchedBefore(uint64_t function, uint32_t context) {
  const std::shared_ptr<Function>& found = found_.Find(function);
  return found != nullptr && found->launched_in == context ? found->launched : nullptr;
}

CUresult LoadedFunctions::Find(uint64_t id, const std::shared_ptr<Context>& context,
                               CUfunction* handle) {
  const std::shared_ptr<Function>& function = found_.Find(id);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t in = context->id;
  *handle = function->launched;
  if (function->launched_in == in) return CUDA_SUCCESS;
  base::MutexLock lock(function->mutex);
  LoadedFunction& loaded = function->loaded[in];
  if (loaded.state == LoadState::kLoaded) {
    *handle = loaded.handle;
    if (loaded.result != CUDA_SUCCESS) return loaded.result;
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
  {
    base::MutexLock lock(function.mutex);
    function.loaded[context.id] = {LoadState::kLoaded, handle, result};
  }
  uses_.up.PokeConsumer();
}

}  // namespace longwire::worker
