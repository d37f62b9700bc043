// Functions and their launches; host functions.
#include "base/try.h"
#include "client-shim/calls/code/functions.h"
#include "client-shim/calls/stream/stream_callback.h"
#include "client-shim/code/launch.h"
#include "client-shim/context/context.h"
#include "client-shim/stream/callbacks.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/stream/stream.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

int CurrentDevice() {
  Context* context = nullptr;
  return RequireContext(&context) == CUDA_SUCCESS ? context->device : 0;
}

}  // namespace

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

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  Where where;
  LONGWIRE_TRY(ResolveStream(hStream, &stream));
  LONGWIRE_TRY(OpenWhere(stream, &where));
  Capture* capture = stream->capture.load();
  uint64_t ticket = NewHostFunction(fn, userData, where.context, capture != nullptr);
  return AddHostFunction(stream, where, ticket);
}

}  // namespace longwire::shim::hand
