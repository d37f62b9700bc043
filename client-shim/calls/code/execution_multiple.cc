// Cooperative launches on several devices: one on each, all behind what any of the streams was
// given, and all later work behind all of them. The blocks of one device synchronise; those of
// several cannot (this_multi_grid() says so), which CUDA 13 has taken away altogether.
#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "base/try.h"
#include "client-shim/code/launch.h"
#include "client-shim/context/properties.h"
#include "client-shim/stream/event.h"
#include "client-shim/stream/program_streams.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

constexpr unsigned kKnownFlags = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                                 CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;

bool SameShape(const CUDA_LAUNCH_PARAMS& a, const CUDA_LAUNCH_PARAMS& b) {
  return a.gridDimX == b.gridDimX && a.gridDimY == b.gridDimY && a.gridDimZ == b.gridDimZ &&
         a.blockDimX == b.blockDimX && a.blockDimY == b.blockDimY && a.blockDimZ == b.blockDimZ &&
         a.sharedMemBytes == b.sharedMemBytes;
}

// One stream of its own on each of several devices that can do this.
CUresult FindStreams(std::span<const CUDA_LAUNCH_PARAMS> launches, std::vector<Stream*>* streams) {
  std::set<int> devices;
  for (const CUDA_LAUNCH_PARAMS& launch : launches) {
    bool own = launch.hStream != nullptr && launch.hStream != CU_STREAM_LEGACY &&
               launch.hStream != CU_STREAM_PER_THREAD;
    if (!own || !SameShape(launch, launches[0])) return CUDA_ERROR_INVALID_VALUE;
    LONGWIRE_TRY(ResolveForWork(launch.hStream, &streams->emplace_back()));
    int device = streams->back()->context->device;
    if (!devices.insert(device).second) return CUDA_ERROR_INVALID_VALUE;
    if (AttributeOr(*FindDevice(device), CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 0) ==
        0) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

// Each stream's later work waits for what all of them have been given.
CUresult WaitForEachOther(const std::vector<Stream*>& streams) {
  if (streams.size() == 1) return CUDA_SUCCESS;
  std::vector<CUevent> events;
  CUresult result = CUDA_SUCCESS;
  for (Stream* stream : streams) {
    if (result == CUDA_SUCCESS) {
      result = NewEvent(stream->context, CU_EVENT_DISABLE_TIMING, &events.emplace_back());
    }
    if (result == CUDA_SUCCESS) result = RecordEvent(FindEvent(events.back()), stream, 0);
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    for (size_t j = 0; j < streams.size() && result == CUDA_SUCCESS; ++j) {
      if (i != j) result = WaitEvent(streams[i], FindEvent(events[j]), 0);
    }
  }
  for (CUevent event : events) {
    if (event != nullptr) DestroyEvent(event);
  }
  return result;
}

}  // namespace

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launchParamsList,
                                              unsigned int numDevices, unsigned int flags) {
  if (launchParamsList == nullptr || numDevices == 0 ||
      FindDevice(static_cast<CUdevice>(numDevices) - 1) == nullptr || (flags & ~kKnownFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::span<const CUDA_LAUNCH_PARAMS> launches(launchParamsList, numDevices);
  std::vector<Stream*> streams;
  CUresult result = FindStreams(launches, &streams);
  if (result == CUDA_SUCCESS &&
      (flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC) == 0) {
    result = WaitForEachOther(streams);
  }
  for (const CUDA_LAUNCH_PARAMS& one : launches) {
    if (result != CUDA_SUCCESS) return result;
    result = hand::cuLaunchCooperativeKernel(one.function, one.gridDimX, one.gridDimY, one.gridDimZ,
                                             one.blockDimX, one.blockDimY, one.blockDimZ,
                                             one.sharedMemBytes, one.hStream, one.kernelParams);
  }
  if (result == CUDA_SUCCESS &&
      (flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC) == 0) {
    result = WaitForEachOther(streams);
  }
  return result;
}

}  // namespace longwire::shim::hand
