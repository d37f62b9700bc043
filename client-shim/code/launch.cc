#include "client-shim/code/launch.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/try.h"
#include "client-shim/code/launch_attributes.h"
#include "client-shim/code/references.h"
#include "client-shim/connect/options.h"
#include "client-shim/context/properties.h"
#include "client-shim/mirror/host_exposure.h"
#include "client-shim/mirror/mirrors.h"
#include "client-shim/session/session.h"
#include "client-shim/stream/capture.h"
#include "client-shim/stream/program_streams.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/calls.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

struct Occupancy {
  base::Mutex mutex{base::ranks::kOccupancy};
  std::map<std::tuple<uint64_t, int, size_t, unsigned>, int> blocks LONGWIRE_GUARDED_BY(mutex);
};

Occupancy& TheOccupancy() {
  static NeverDestroyed<Occupancy> occupancy;
  return *occupancy;
}

// The driver's own limits for the device.
CUresult CheckDeviceLimits(const Device& device, const LaunchShape& shape) {
  const std::pair<uint32_t, CUdevice_attribute> sides[] = {
      {shape.grid_x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
      {shape.grid_y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
      {shape.grid_z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
      {shape.block_x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X},
      {shape.block_y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y},
      {shape.block_z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z}};
  for (auto [value, attribute] : sides) {
    if (value == 0 || value > static_cast<uint32_t>(AttributeOr(device, attribute, INT32_MAX))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  uint64_t threads = uint64_t{shape.block_x} * shape.block_y * shape.block_z;
  int most = AttributeOr(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024);
  return threads > static_cast<uint64_t>(most) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// What the driver answers to more threads than the `most` that a block of the function may have:
// either there are no more registers, which are given out by 256 to a warp and to four warps at a
// time, or the code itself says so (.maxntid).
CUresult TooManyThreads(Function* function, int which, const Device& device, int most) {
  int registers = 0;
  LONGWIRE_TRY(FunctionAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, which, &registers));
  int there = AttributeOr(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, INT32_MAX);
  int of_warp = std::max(256, (registers * 32 + 255) / 256 * 256);
  int with_registers = there / of_warp / 4 * 4 * 32;
  return most < with_registers ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

CUresult CheckFunctionLimits(Function* function, const Device& device, int ordinal,
                             const LaunchShape& shape) {
  int which = function->module->is_library ? ordinal : -1;
  int threads = static_cast<int>(shape.block_x * shape.block_y * shape.block_z);
  int most = 0, dynamic = 0;
  LONGWIRE_TRY(FunctionAttribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, which, &most));
  if (threads > most) return TooManyThreads(function, which, device, most);
  CUresult result =
      FunctionAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, which, &dynamic);
  if (result == CUDA_SUCCESS && shape.shared_bytes > static_cast<uint32_t>(dynamic)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// `owner`: on whose multiprocessors all blocks must fit at once.
CUresult CheckCooperative(Function* function, const Device& device, const Context* owner,
                          const LaunchShape& shape) {
  if (!shape.cooperative) return CUDA_SUCCESS;
  if (AttributeOr(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0) == 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  int threads = static_cast<int>(shape.block_x * shape.block_y * shape.block_z), blocks = 0;
  LONGWIRE_TRY(MaxActiveBlocks(function, threads, shape.shared_bytes, 0, &blocks));
  uint64_t processors = AttributeOr(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
  if (owner->green != nullptr) processors = owner->multiprocessors;
  uint64_t grid = uint64_t{shape.grid_x} * shape.grid_y * shape.grid_z;
  return grid > processors * static_cast<uint64_t>(blocks) ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                                           : CUDA_SUCCESS;
}

}  // namespace

CUresult PackParameters(const Function& function, void** parameters, void** extra,
                        ParameterStorage& storage, std::span<const std::byte>* packed) {
  if (parameters != nullptr) {
    if (extra != nullptr && extra[0] != CU_LAUNCH_PARAM_END) return CUDA_ERROR_INVALID_VALUE;
    if (function.parameter_bytes > kMaxParameterBytes) return CUDA_ERROR_INVALID_VALUE;
    std::byte* gathered = storage.Take(function.parameter_bytes);
    std::memset(gathered, 0, function.parameter_bytes);
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      const Parameter& parameter = function.parameters[i];
      std::memcpy(gathered + parameter.offset, parameters[i], parameter.size);
    }
    *packed = {gathered, function.parameter_bytes};
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) {
    return function.parameters.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  const std::byte* buffer = nullptr;
  size_t bytes = 0;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<const std::byte*>(extra[i + 1]);
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (bytes > kMaxParameterBytes || (buffer == nullptr && bytes != 0)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *packed = {buffer, bytes};
  return CUDA_SUCCESS;
}

CUresult MaxActiveBlocks(Function* function, int block_threads, size_t shared_bytes, unsigned flags,
                         int* blocks) {
  Occupancy& occupancy = TheOccupancy();
  Context* context = nullptr;
  LONGWIRE_TRY(RequireContext(&context));
  auto key = std::tuple(function->NumberAt(*context->session), block_threads, shared_bytes, flags);
  {
    base::MutexLock lock(occupancy.mutex);
    auto known = occupancy.blocks.find(key);
    if (known != occupancy.blocks.end()) {
      *blocks = known->second;
      return CUDA_SUCCESS;
    }
  }
  LONGWIRE_TRY(forward::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function->handle, block_threads, shared_bytes, flags));
  base::MutexLock lock(occupancy.mutex);
  occupancy.blocks[key] = *blocks;
  return CUDA_SUCCESS;
}

CUresult Launch(CUfunction handle, const LaunchShape& asked, CUstream stream_handle,
                void** parameters, void** extra, std::span<const CUlaunchAttribute> attributes) {
  Stream* stream = nullptr;
  LONGWIRE_TRY(ResolveForWork(stream_handle, &stream));
  Function* function = FindFunction(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!function->module->is_library &&
      function->module->context_number != stream->context->number.load()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  LaunchShape shape = asked;
  for (const CUlaunchAttribute& attribute : attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      shape.cooperative = attribute.value.cooperative != 0;
    }
  }
  const Device& device = *FindDevice(stream->context->device);
  ParameterStorage storage;
  std::span<const std::byte> packed;
  Where where;
  LaunchEvents events;
  LONGWIRE_TRY(CheckDeviceLimits(device, shape));
  LONGWIRE_TRY(CheckAttributes(&attributes, shape, function, stream->context, &events));
  LONGWIRE_TRY(CheckFunctionLimits(function, device, stream->context->device, shape));
  LONGWIRE_TRY(CheckCooperative(function, device, stream->owner, shape));
  LONGWIRE_TRY(PackParameters(*function, parameters, extra, storage, &packed));
  LONGWIRE_TRY(ExposeArguments(packed));
  LONGWIRE_TRY(OpenWhere(stream, &where));
  calls::lwLaunch launch;
  launch.function = function->NumberAt(*where.session);
  launch.grid_x = shape.grid_x;
  launch.grid_y = shape.grid_y;
  launch.grid_z = shape.grid_z;
  launch.block_x = shape.block_x;
  launch.block_y = shape.block_y;
  launch.block_z = shape.block_z;
  launch.shared_bytes = shape.shared_bytes;
  launch.cooperative = shape.cooperative ? 1 : 0;
  launch.attributes = std::as_bytes(attributes);
  launch.parameters = packed;
  std::vector<ReferenceBinding> bindings = BindingsOf(function->module);
  for (const ReferenceBinding& binding : bindings) launch.references.push_back(binding.record());
  uint64_t position = 0;
  {
    DeviceWork work(stream, Sends::kPerhapsLater);
    position = where.session->Submit(where, launch, launch.EncodedBytes());
  }
  if (position == ClientSession::kNoPosition) return ClientSession::NotQueued();
  LONGWIRE_TRY(events.Record(stream));
  if (ProcessOptions().launch_blocking && where.flags == 0) {
    LONGWIRE_TRY(WaitForStream(stream, position));
    return TakeError(stream->context);
  }
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
