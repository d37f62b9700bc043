#include "server/worker/issue/launch_run.h"

#include <algorithm>
#include <cstring>

#include "server/worker/code/loaded_functions.h"
#include "server/worker/completion/gates.h"
#include "server/worker/tracing/kernel_statistics.h"
#include "wire/limits.h"
#include "wire/record.h"
#include "wire/switches.h"

namespace longwire::worker {
namespace {

constexpr size_t kAlignment = 16;  // of a launch's parameters, as the client lays them out

}  // namespace

bool LaunchRun::Begin(const Stream& stream, uint64_t last_position, size_t most) {
  static const bool off = wire::IsSwitchedOff("launch-runs");
  count_ = used_bytes_ = 0;
  stream_ = &stream;
  last_position_ = last_position;
  most_ = std::min(most, kMaxLaunches);
  uses_.functions.FollowRules();
  counts_ = uses_.statistics.Follow();
  times_next_ = false;
  late_ = counts_ && KernelStatistics::IsLate(stream);
  return most_ != 0 && !off && !stream.capturing && stream.context->failed == 0;
}

bool LaunchRun::Add(uint64_t position, std::span<const std::byte> arguments) {
  if (count_ == most_ || position > last_position_) return false;
  wire::Reader reader(arguments);
  if (decoded_.Decode(reader) != wire::WireResult::kOk || reader.remaining() != 0) return false;
  bool plain = decoded_.attributes.empty() && decoded_.references.empty();
  size_t bytes = decoded_.parameters.size();
  if (!plain || decoded_.cooperative || bytes > kParameterBytes - used_bytes_) return false;
  const Function* found = uses_.functions.LaunchedBefore(decoded_.function, stream_->context->id);
  if (found == nullptr) return false;
  if (counts_ && !CountNext(*found)) return false;
  std::byte* parameters = parameters_.data() + used_bytes_;
  std::ranges::copy(decoded_.parameters, parameters);
  used_bytes_ =
      std::min((used_bytes_ + bytes + kAlignment - 1) & ~(kAlignment - 1), kParameterBytes);
  launches_[count_++] = {.shape = {.function = found->launched,
                                   .grid = {decoded_.grid_x, decoded_.grid_y, decoded_.grid_z},
                                   .block = {decoded_.block_x, decoded_.block_y, decoded_.block_z},
                                   .shared_bytes = decoded_.shared_bytes,
                                   .parameter_bytes = static_cast<uint32_t>(bytes)},
                         .parameters = parameters,
                         .position = position};
  if (stream_->to_mark.AnyUpTo(position)) most_ = count_;
  return true;
}

bool LaunchRun::CountNext(const Function& function) {
  CountedKernel* kernel = KernelStatistics::Counted(function, decoded_);
  kernels_[count_] = kernel;
  times_next_ = kernel == nullptr || kernel->due();
  return !times_next_;
}

size_t LaunchRun::Give(CUresult* result) {
  *result = CUDA_SUCCESS;
  Gates& gates = uses_.gates;
  LaunchChains& chains = uses_.chains;
  int32_t device = stream_->context->device;
  size_t given = 0, alone = 0;
  // Counted before they go, and locked: behind a call of the driver an operation on locked memory
  // waits until the device has taken what the driver wrote to it.
  auto calls = static_cast<int64_t>(count_);
  gates.Issued(device, calls);
  base::MutexLock in_use(chains.mutex());
  while (given < count_ && *result == CUDA_SUCCESS && gates.IsWideOpen(device)) {
    if (alone == 0) {
      auto left = std::span(launches_).subspan(given, count_ - given);
      size_t together = chains.Launch(*stream_, stream_->in_a_row + given, left, &alone);
      given += together;
      if (together != 0) continue;
    }
    --alone;
    *result = LaunchAlone(launches_[given++]);
  }
  if (given < count_) gates.NotIssued(device, calls - static_cast<int64_t>(given));
  if (counts_) uses_.statistics.Count(*stream_, late_, std::span(kernels_).first(given));
  return given;
}

CUresult LaunchRun::LaunchAlone(const PlainLaunch& launch) const {
  const LaunchShape& shape = launch.shape;
  size_t bytes = shape.parameter_bytes;
  void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, launch.parameters, CU_LAUNCH_PARAM_BUFFER_SIZE,
                    &bytes, CU_LAUNCH_PARAM_END};
  return uses_.driver.cuLaunchKernel(
      shape.function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
      shape.block[2], shape.shared_bytes, stream_->handle, nullptr, bytes != 0 ? packed : nullptr);
}

}  // namespace longwire::worker
