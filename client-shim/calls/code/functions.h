// What modules and libraries, functions and kernels have in common.
#pragma once

#include "client-shim/code/module.h"

namespace longwire::shim::hand {

inline CUresult NamedFunction(Module* module, const char* name, CUfunction* function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = found->second->handle;
  return CUDA_SUCCESS;
}

inline CUresult ParameterInfo(Function* function, size_t index, size_t* offset, size_t* size) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->parameters[index].offset;
  if (size != nullptr) *size = function->parameters[index].size;
  return CUDA_SUCCESS;
}

// Which driver object's attribute it is: a kernel's for a device, or a function's in its context.
inline int DeviceFor(const Function& function, int device) {
  return function.module->is_library ? device : -1;
}

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
