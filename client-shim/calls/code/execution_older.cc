// Launches as before CUDA 4: a function's block shape, shared memory and parameters are set one by
// one and kept with the function until the next launch; each launch is an ordinary one from them.
#include <cstring>

#include "client-shim/code/launch.h"
#include "client-shim/code/module.h"
#include "client-shim/code/references.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr int kMaxBlockThreads = 1024;  // of every device; its own limit is checked at the launch

CUresult SetParameter(CUfunction handle, int offset, const void* value, unsigned bytes) {
  Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset < 0 || (value == nullptr && bytes != 0)) return CUDA_ERROR_INVALID_VALUE;
  const size_t end = static_cast<size_t>(offset) + bytes;
  if (end > kMaxParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_SUCCESS;
  base::MutexLock lock(function->mutex);
  std::vector<std::byte>& parameters = function->next_launch.parameters;
  if (parameters.size() < end) parameters.resize(end);
  std::memcpy(parameters.data() + offset, value, bytes);
  return CUDA_SUCCESS;
}

CUresult LaunchAsSet(CUfunction handle, int width, int height, CUstream stream) {
  Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  NextLaunch next;
  {
    base::MutexLock lock(function->mutex);
    next = function->next_launch;
  }
  // A parameter that the kernel reads and nobody set room for would be whatever lies there.
  if (next.parameter_bytes < function->parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  next.parameters.resize(next.parameter_bytes);
  size_t bytes = next.parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, next.parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  LaunchShape shape;
  shape.grid_x = static_cast<uint32_t>(width);
  shape.grid_y = static_cast<uint32_t>(height);
  shape.block_x = next.block_x;
  shape.block_y = next.block_y;
  shape.block_z = next.block_z;
  shape.shared_bytes = next.shared_bytes;
  return Launch(handle, shape, stream, nullptr, extra, {});
}

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (int side : {x, y, z}) {
    if (side <= 0 || side > kMaxBlockThreads) return CUDA_ERROR_INVALID_VALUE;
  }
  if (static_cast<int64_t>(x) * y * z > kMaxBlockThreads) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(function->mutex);
  function->next_launch.block_x = static_cast<uint32_t>(x);
  function->next_launch.block_y = static_cast<uint32_t>(y);
  function->next_launch.block_z = static_cast<uint32_t>(z);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  base::MutexLock lock(function->mutex);
  function->next_launch.shared_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes) {
  Function* function = FindFunction(hfunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (numbytes > kMaxParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  base::MutexLock lock(function->mutex);
  function->next_launch.parameter_bytes = numbytes;
  return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value) {
  return SetParameter(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value) {
  return SetParameter(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void* ptr, unsigned int numbytes) {
  return SetParameter(hfunc, offset, ptr, numbytes);
}

CUresult cuLaunch(CUfunction f) { return LaunchAsSet(f, 1, 1, CU_STREAM_LEGACY); }

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height) {
  return LaunchAsSet(f, grid_width, grid_height, CU_STREAM_LEGACY);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
  return LaunchAsSet(f, grid_width, grid_height, hStream);
}

// Nothing is left to do: a function's launches take all of its module's references along.
CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef) {
  Function* function = FindFunction(hfunc);
  Reference* reference = FindReference(reinterpret_cast<uint64_t>(hTexRef), false);
  if (function == nullptr || reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool own = reference->module == function->module;
  return own && texunit == CU_PARAM_TR_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace longwire::shim::hand
