// Modules.
#include "base/try.h"
#include "client-shim/calls/code/functions.h"
#include "client-shim/calls/memory/memory_narrow.h"
#include "client-shim/code/probe_maps.h"
#include "client-shim/session/process_state.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {

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
  ReadProbes(module);
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
  LONGWIRE_TRY(GlobalOf(module, name, GlobalKind::kAny, &address, &size));
  if (dptr != nullptr) *dptr = address;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (CurrentProcessState() != ProcessState::kReady) return CUDA_ERROR_NOT_INITIALIZED;
  // Lazy, whatever the device's side does: loading everything would send everything.
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal(CUdeviceptr_v1* dptr, unsigned int* bytes, CUmodule hmod,
                           const char* name) {
  CUdeviceptr address = 0;
  size_t size = 0;
  CUresult result = hand::cuModuleGetGlobal_v2(&address, &size, hmod, name);
  return GiveNarrow(result, address, dptr, size, bytes);
}

}  // namespace longwire::shim::hand
