// A library's modules in contexts: each has its own globals, as on every device, but for managed
// variables.
#include "softgpu/driver/module/module.h"

namespace softgpu {

CUresult InContext(Module& library, Context& context, Module** module) {
  if (!library.library) {
    *module = &library;
    return library.context == &context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  base::MutexLock lock(library.mutex);
  if (!library.own_used && library.device == context.device) {
    library.own_used = true;
    library.own_user = &context;
  }
  if (library.own_user == &context) {
    *module = &library;
    return CUDA_SUCCESS;
  }
  std::shared_ptr<Module>& instance = library.in_contexts[&context];
  if (!instance) {
    Status status;
    instance = MakeModule(library.ptx, context.device, library.managed, &status);
    if (!instance) return static_cast<CUresult>(status.code);
    instance->context = &context;
    instance->of_library = true;
    for (size_t i = 0; i < instance->functions.size(); ++i) {
      Function& from = *library.functions[i];
      Function& to = *instance->functions[i];
      to.max_dynamic_shared_bytes = from.max_dynamic_shared_bytes.load();
      to.carve_out = from.carve_out.load();
      for (int side = 0; side < 3; ++side) to.cluster[side] = from.cluster[side].load();
      to.non_portable = from.non_portable.load();
      to.cluster_policy = from.cluster_policy.load();
    }
    PublishModule(instance);
  }
  *module = instance.get();
  return CUDA_SUCCESS;
}

CUresult InContext(std::shared_ptr<Function>* function, Context& context) {
  Module* module = nullptr;
  LONGWIRE_TRY(InContext(*(*function)->module, context, &module));
  if (module == (*function)->module) return CUDA_SUCCESS;
  *function = FindFunction(module->functions[(*function)->index].get());
  return *function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void ForgetInLibraries(Context& context) {
  for (auto& library : Driver::Get().modules.All()) {
    if (!library->library) continue;
    base::MutexLock lock(library->mutex);
    if (library->own_user == &context) library->own_user = nullptr;
    library->in_contexts.erase(&context);
  }
}

void ForEachForm(Function& function, const std::function<void(Function&)>& change) {
  change(function);
  Module& module = *function.module;
  if (!module.library) return;
  base::MutexLock lock(module.mutex);
  for (auto& [context, instance] : module.in_contexts) change(*instance->functions[function.index]);
}

}  // namespace softgpu
