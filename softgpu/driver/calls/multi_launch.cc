// Cooperative launches on several devices: one on each, all behind what any of the streams was
// given, and all later work behind all of them. Their blocks cannot synchronise across devices.
#include "softgpu/driver/stream/stream.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace softgpu {
namespace {

bool SameShape(const CUDA_LAUNCH_PARAMS& a, const CUDA_LAUNCH_PARAMS& b) {
  return a.gridDimX == b.gridDimX && a.gridDimY == b.gridDimY && a.gridDimZ == b.gridDimZ &&
         a.blockDimX == b.blockDimX && a.blockDimY == b.blockDimY && a.blockDimZ == b.blockDimZ &&
         a.sharedMemBytes == b.sharedMemBytes;
}

CUresult FindStreams(std::span<const CUDA_LAUNCH_PARAMS> launches,
                     std::vector<std::shared_ptr<Stream>>* streams) {
  std::set<int> devices;
  for (const CUDA_LAUNCH_PARAMS& launch : launches) {
    if (!SameShape(launch, launches[0])) return CUDA_ERROR_INVALID_VALUE;
    bool own = launch.hStream != nullptr && launch.hStream != CU_STREAM_LEGACY &&
               launch.hStream != CU_STREAM_PER_THREAD;
    if (!own) return CUDA_ERROR_INVALID_VALUE;
    streams->push_back(Driver::Get().streams.Find(launch.hStream));
    if (!streams->back()) return CUDA_ERROR_INVALID_HANDLE;
    if (!devices.insert(streams->back()->context().device).second) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

void WaitForEachOther(const std::vector<std::shared_ptr<Stream>>& streams) {
  base::MutexLock lock(Driver::mutex);
  std::vector<CompletionRef> given;
  for (auto& stream : streams) {
    if (stream->last) given.push_back(stream->last);
  }
  for (auto& stream : streams)
    Enqueue(
        *stream, [](int) {}, given);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned int count,
                                              unsigned int flags) {
  LONGWIRE_TRY(Enter());
  constexpr unsigned kKnown = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
                              CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
  if (list == nullptr || count == 0 || count > Driver::Get().devices.size() ||
      (flags & ~kKnown) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::span<const CUDA_LAUNCH_PARAMS> launches(list, count);
  std::vector<std::shared_ptr<Stream>> streams;
  LONGWIRE_TRY(FindStreams(launches, &streams));
  if ((flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC) == 0) {
    WaitForEachOther(streams);
  }
  for (const CUDA_LAUNCH_PARAMS& one : launches) {
    LONGWIRE_TRY(cuLaunchCooperativeKernel(one.function, one.gridDimX, one.gridDimY, one.gridDimZ,
                                           one.blockDimX, one.blockDimY, one.blockDimZ,
                                           one.sharedMemBytes, one.hStream, one.kernelParams));
  }
  if ((flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC) == 0) {
    WaitForEachOther(streams);
  }
  return CUDA_SUCCESS;
}
