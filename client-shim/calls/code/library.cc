// Libraries and their kernels.
#include "base/try.h"
#include "client-shim/calls/code/functions.h"
#include "client-shim/code/probe_maps.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/session/session.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

Function* FindKernel(CUkernel kernel) { return FindFunction(reinterpret_cast<CUfunction>(kernel)); }

}  // namespace

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
  LONGWIRE_TRY(LoadFile(fileName, &image));
  return LoadLibrary(image.data(), {numJitOptions, jitOptions, jitOptionsValues}, library);
}

CUresult cuLibraryUnload(CUlibrary library) {
  Module* module = FindLibrary(library);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ReadProbes(module);
  return UnloadModule(module);
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
  LONGWIRE_TRY(RequireHealthyContext(&context));
  calls::lwUnifiedFunction ask;
  ask.library = module->id;
  ask.name = symbol;
  auto answer = context->session->CallAndWait({context->number.load(), nullptr, 0}, ask);
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

CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library,
                             const char* name) {
  Module* module = FindLibrary(library);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  size_t size = 0;
  LONGWIRE_TRY(GlobalOf(module, name, GlobalKind::kManaged, &address, &size));
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
