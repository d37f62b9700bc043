// Shared by the calls about modules and libraries, functions and kernels.
#pragma once

#include "client-shim/code/module.h"

namespace longwire::shim::hand {

// CUDA_ERROR_NOT_FOUND if the module has no function of that name.
inline CUresult NamedFunction(Module* module, const char* name, CUfunction* function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = found->second->handle;
  return CUDA_SUCCESS;
}

// Where a parameter lies among the packed parameters, and its bytes, if `size` is not null.
inline CUresult ParameterInfo(Function* function, size_t index, size_t* offset, size_t* size) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->parameters[index].offset;
  if (size != nullptr) *size = function->parameters[index].size;
  return CUDA_SUCCESS;
}

// The device for whose kernel an attribute is asked; -1 for a function, which has its own context.
inline int DeviceFor(const Function& function, int device) {
  return function.module->is_library ? device : -1;
}

// The handles of the first `count` functions, or fewer, in the module's order.
template <class Handle>
CUresult Enumerate(Module* module, Handle* handles, unsigned count) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count && i < module->in_order.size(); ++i) {
    handles[i] = reinterpret_cast<Handle>(module->in_order[i]->handle);
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
