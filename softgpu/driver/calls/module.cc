// Modules, libraries, functions and kernels.
#include <cstring>

#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/module/cluster.h"
#include "softgpu/driver/module/module_load.h"
#include "softgpu/driver/stream/capture.h"

namespace softgpu {
namespace {

CUmodule ModuleHandle(Module* module) { return reinterpret_cast<CUmodule>(module); }

CUresult Load(CUmodule* handle, const void* image, const JitOptions& jit) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module;
  LONGWIRE_TRY(LoadModule(image, context, false, jit, &module));
  *handle = ModuleHandle(module);
  return CUDA_SUCCESS;
}

CUresult EnterModule(const void* handle, std::shared_ptr<Module>* module) {
  LONGWIRE_TRY(Enter());
  *module = Driver::Get().modules.Find(handle);
  return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult EnterFunction(const void* handle, std::shared_ptr<Function>* function) {
  LONGWIRE_TRY(Enter());
  *function = FindFunction(handle);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult GetFunction(Function** found, const void* handle, const char* name) {
  std::shared_ptr<Module> module;
  LONGWIRE_TRY(EnterModule(handle, &module));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (auto& function : module->functions) {
    if (function->info->name == name) {
      *found = function.get();
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult Enumerate(const void* handle, Function** functions, unsigned count) {
  std::shared_ptr<Module> module;
  LONGWIRE_TRY(EnterModule(handle, &module));
  if (functions == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count && i < module->functions.size(); ++i) {
    functions[i] = module->functions[i].get();
  }
  return CUDA_SUCCESS;
}

// What the module or library is in the current context. `kept` holds the library.
CUresult EnterInContext(const void* handle, std::shared_ptr<Module>* kept, Module** module) {
  Context* context;
  LONGWIRE_TRY(EnterModule(handle, kept));
  *module = kept->get();
  if (!(*kept)->library) return CUDA_SUCCESS;
  LONGWIRE_TRY(Enter(&context));
  return InContext(**kept, *context, module);
}

CUresult GetGlobal(CUdeviceptr* address, size_t* bytes, const void* handle, const char* name) {
  std::shared_ptr<Module> kept;
  Module* module;
  LONGWIRE_TRY(EnterInContext(handle, &kept, &module));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const GlobalInfo& global : module->program->globals()) {
    if (global.name != name) continue;
    if (address != nullptr) *address = global.address;
    if (bytes != nullptr) *bytes = global.bytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult GetParameter(const void* handle, size_t index, size_t* offset, size_t* bytes) {
  std::shared_ptr<Function> function;
  LONGWIRE_TRY(EnterFunction(handle, &function));
  auto& parameters = function->info->parameters;
  if (offset == nullptr || index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  if (bytes != nullptr) *bytes = parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult GetAttribute(int* value, CUfunction_attribute attribute, const void* handle) {
  std::shared_ptr<Function> function;
  LONGWIRE_TRY(EnterFunction(handle, &function));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const KernelInfo& info = *function->info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = info.max_threads_per_block;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.local_bytes_per_thread);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = info.registers_per_thread;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = info.target;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = DeviceShape::kComputeMajor * 10 + DeviceShape::kComputeMinor;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic_shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = function->carve_out;
      break;
    default:
      if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;  // constant memory, cache mode
      if (attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) {
        return GetClusterAttribute(value, attribute, *function);
      }
  }
  return CUDA_SUCCESS;
}

CUresult SetAttribute(const void* handle, CUfunction_attribute attribute, int value) {
  std::shared_ptr<Function> function;
  LONGWIRE_TRY(EnterFunction(handle, &function));
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    size_t most = DeviceShape::kSharedBytesPerBlockOptin;
    if (value < 0 || value + function->info->static_shared_bytes > most) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    ForEachForm(*function, [value](Function& form) { form.max_dynamic_shared_bytes = value; });
    return CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    ForEachForm(*function, [value](Function& form) { form.carve_out = value; });
    return CUDA_SUCCESS;
  }
  if (attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET &&
      attribute < CU_FUNC_ATTRIBUTE_MAX) {
    return SetClusterAttribute(*function, attribute, value);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult GetName(const char** name, const void* handle) {
  std::shared_ptr<Function> function;
  LONGWIRE_TRY(EnterFunction(handle, &function));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->info->name.c_str();
  return CUDA_SUCCESS;
}

CUresult Accept(const void* handle) {
  std::shared_ptr<Function> function;
  return EnterFunction(handle, &function);
}

CUresult Unload(const void* handle, bool library) {
  std::shared_ptr<Module> module;
  LONGWIRE_TRY(EnterUnsafe());
  LONGWIRE_TRY(EnterModule(handle, &module));
  if (module->library != library || module->of_library) return CUDA_ERROR_INVALID_HANDLE;
  UnloadModule(*module);
  return CUDA_SUCCESS;
}

CUresult GetOwner(Module** owner, const void* handle, bool library) {
  std::shared_ptr<Function> function;
  LONGWIRE_TRY(EnterFunction(handle, &function));
  if (owner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (library && !function->module->library) return CUDA_ERROR_INVALID_HANDLE;
  *owner = function->module;
  return CUDA_SUCCESS;
}

template <class Handle>
Function** AsFunctions(Handle* handles) {
  return reinterpret_cast<Function**>(handles);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return Load(module, image, {}); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Load(module, image, {count, options, values});
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return Load(module, image, {});
}
CUresult cuModuleLoad(CUmodule* handle, const char* name) {
  Context* context;
  LONGWIRE_TRY(Enter(&context));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module;
  LONGWIRE_TRY(LoadModuleFile(name, context, false, {}, &module));
  *handle = ModuleHandle(module);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { return Unload(module, false); }
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  LONGWIRE_TRY(Enter());
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return GetFunction(AsFunctions(function), module, name);
}
CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  std::shared_ptr<Module> module;
  LONGWIRE_TRY(EnterModule(handle, &module));
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule module) {
  return Enumerate(module, AsFunctions(functions), count);
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return GetGlobal(address, bytes, module, name);
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                           void** values, unsigned int count, CUlibraryOption*, void**,
                           unsigned int) {
  LONGWIRE_TRY(Enter());
  if (library == nullptr || (count != 0 && (options == nullptr || values == nullptr))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return LoadModule(code, nullptr, true, {count, options, values},
                    reinterpret_cast<Module**>(library));
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* name, CUjit_option* options,
                               void** values, unsigned int count, CUlibraryOption*, void**,
                               unsigned int) {
  LONGWIRE_TRY(Enter());
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return LoadModuleFile(name, nullptr, true, {count, options, values},
                        reinterpret_cast<Module**>(library));
}
CUresult cuLibraryUnload(CUlibrary library) { return Unload(library, true); }
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return GetFunction(AsFunctions(kernel), library, name);
}
CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary library) {
  return cuModuleGetFunctionCount(count, reinterpret_cast<CUmodule>(library));
}
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary library) {
  return Enumerate(library, AsFunctions(kernels), count);
}
CUresult cuLibraryGetModule(CUmodule* handle, CUlibrary library) {
  std::shared_ptr<Module> kept;
  Module* module;
  LONGWIRE_TRY(EnterInContext(library, &kept, &module));
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = ModuleHandle(module);
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                            const char* name) {
  return GetGlobal(address, bytes, library, name);
}
CUresult cuLibraryGetUnifiedFunction(void** function, CUlibrary library, const char* name) {
  std::shared_ptr<Module> kept;
  Module* module;
  LONGWIRE_TRY(EnterInContext(library, &kept, &module));
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const GlobalInfo& unified : module->program->unified_functions()) {
    if (unified.name != name) continue;
    *function = reinterpret_cast<void*>(unified.address);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                             const char* name) {
  CUdeviceptr found = 0;
  LONGWIRE_TRY(GetGlobal(&found, bytes, library, name));
  if (!AddressSpace::Get().IsManaged(found)) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  std::shared_ptr<Function> found;
  Context* context;
  LONGWIRE_TRY(EnterFunction(kernel, &found));
  LONGWIRE_TRY(Enter(&context));
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LONGWIRE_TRY(InContext(&found, *context));
  *function = reinterpret_cast<CUfunction>(found.get());
  return CUDA_SUCCESS;
}
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return GetOwner(reinterpret_cast<Module**>(library), kernel, true);
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) { return GetName(name, kernel); }
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return GetParameter(kernel, index, offset, bytes);
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice) {
  return GetAttribute(value, attribute, kernel);
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice) {
  return SetAttribute(kernel, attribute, value);
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) { return Accept(kernel); }

CUresult cuFuncGetName(const char** name, CUfunction function) { return GetName(name, function); }
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return GetOwner(reinterpret_cast<Module**>(module), function, false);
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return GetParameter(function, index, offset, bytes);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return GetAttribute(value, attribute, function);
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return SetAttribute(function, attribute, value);
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) { return Accept(function); }
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) { return Accept(function); }
CUresult cuFuncLoad(CUfunction function) { return Accept(function); }
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  LONGWIRE_TRY(Accept(function));
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
