// Modules, libraries, functions, kernels and their launches.
#include "client-shim/code/module.h"

#include "client-shim/code/launch.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/session/session.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

Function* FindKernel(CUkernel kernel) { return FindFunction(reinterpret_cast<CUfunction>(kernel)); }

CUresult NamedFunction(Module* module, const char* name, CUfunction* function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto found = module->functions.find(name);
  if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = found->second->handle;
  return CUDA_SUCCESS;
}

CUresult ParameterInfo(Function* function, size_t index, size_t* offset, size_t* size) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->parameters[index].offset;
  if (size != nullptr) *size = function->parameters[index].size;
  return CUDA_SUCCESS;
}

// Which driver object's attribute it is: a kernel's for a device, or a function's in its context.
int DeviceFor(const Function& function, int device) {
  return function.module->is_library ? device : -1;
}

int CurrentDevice() {
  Context* context = nullptr;
  return RequireContext(&context) == CUDA_SUCCESS ? context->device : 0;
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

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  return LoadModule(image, {numOptions, options, optionValues}, module);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return LoadModule(image, {}, module);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return LoadModule(fatCubin, {}, module);
}

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  std::vector<char> image;
  CUresult result = LoadFile(fname, &image);
  return result != CUDA_SUCCESS ? result : LoadModule(image.data(), {}, module);
}

CUresult cuModuleUnload(CUmodule hmod) {
  Module* module = FindModule(hmod);
  if (module == nullptr || module->is_library) return CUDA_ERROR_INVALID_HANDLE;
  return UnloadModule(module);
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  CUresult result = NamedFunction(FindModule(hmod), name, hfunc);
  if (result == CUDA_ERROR_NOT_FOUND) *hfunc = nullptr;  // as the driver does
  return result;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  Module* module = FindModule(mod);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->in_order.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                    CUmodule mod) {
  return Enumerate(FindModule(mod), functions, numFunctions);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  Module* module = FindModule(hmod);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  size_t size = 0;
  CUresult result = GlobalOf(module, name, GlobalKind::kAny, &address, &size);
  if (result != CUDA_SUCCESS) return result;
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
  // Library options say who keeps the image's bytes; they have been sent away either way.
  return LoadLibrary(code, {numJitOptions, jitOptions, jitOptionsValues}, library);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void** libraryOptionValues,
                               unsigned int numLibraryOptions) {
  std::vector<char> image;
  CUresult result = LoadFile(fileName, &image);
  if (result != CUDA_SUCCESS) return result;
  return LoadLibrary(image.data(), {numJitOptions, jitOptions, jitOptionsValues}, library);
}

CUresult cuLibraryUnload(CUlibrary library) {
  Module* module = FindLibrary(library);
  return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : UnloadModule(module);
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  CUfunction function = nullptr;
  CUresult result = NamedFunction(FindLibrary(library), name, &function);
  if (result == CUDA_SUCCESS) *pKernel = reinterpret_cast<CUkernel>(function);
  return result;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  return hand::cuModuleGetFunctionCount(count, reinterpret_cast<CUmodule>(lib));
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  return Enumerate(FindLibrary(lib), kernels, numKernels);
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  Module* module = FindLibrary(library);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;  // the library's module there is what is asked for
  CUresult result = RequireContext(&context);
  if (result == CUDA_SUCCESS) *pMod = module->handle;
  return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  if (FindLibrary(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return hand::cuModuleGetGlobal_v2(dptr, bytes, reinterpret_cast<CUmodule>(library), name);
}

// Device code may call what this tells, the program cannot.
CUresult cuLibraryGetUnifiedFunction(void** fptr, CUlibrary library, const char* symbol) {
  if (fptr == nullptr || symbol == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = FindLibrary(library);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  CUresult result = RequireHealthyContext(&context);
  if (result != CUDA_SUCCESS) return result;
  calls::lwUnifiedFunction ask;
  ask.library = module->id;
  ask.name = symbol;
  auto answer = TheSession().CallAndWait({context->number.load(), nullptr, 0}, ask);
  if (answer.code == CUDA_SUCCESS) *fptr = reinterpret_cast<void*>(answer.reply.address);
  return answer.code;
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  Function* function = FindKernel(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  CUresult result = RequireContext(&context);
  if (result == CUDA_SUCCESS) *pFunc = function->handle;
  return result;
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  Function* function = FindKernel(kernel);
  if (function == nullptr || !function->module->is_library) return CUDA_ERROR_INVALID_HANDLE;
  *pLib = reinterpret_cast<CUlibrary>(function->module->handle);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  Function* function = FindKernel(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (FindDevice(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return FunctionAttribute(function, attrib, DeviceFor(*function, dev), pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  Function* function = FindKernel(kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (FindDevice(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return SetFunctionAttribute(function, attrib, val, DeviceFor(*function, dev));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  return FindKernel(kernel) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return hand::cuFuncGetName(name, reinterpret_cast<CUfunction>(hfunc));
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
  return ParameterInfo(FindKernel(kernel), paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return FunctionAttribute(function, attrib, DeviceFor(*function, CurrentDevice()), pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return SetFunctionAttribute(function, attrib, value, DeviceFor(*function, CurrentDevice()));
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return FindFunction(hfunc) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
  return FindFunction(hfunc) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *hmod = function->module->handle;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                            size_t* paramSize) {
  return ParameterInfo(FindFunction(func), paramIndex, paramOffset, paramSize);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (FindFunction(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;  // the worker loads it before its first launch
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  return FindFunction(function) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                        void** kernelParams, void** extra) {
  return Launch(f, {gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes},
                hStream, kernelParams, extra, {});
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
  return Launch(
      f, {gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, true},
      hStream, kernelParams, nullptr, {});
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                          void** extra, CUstream stream) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  CUstream on = config->hStream == nullptr ? stream : config->hStream;
  return Launch(f,
                {config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                 config->blockDimY, config->blockDimZ, config->sharedMemBytes},
                on, kernelParams, extra, {config->attrs, config->numAttrs});
}

}  // namespace longwire::shim::hand
