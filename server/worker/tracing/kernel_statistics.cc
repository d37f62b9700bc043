#include "server/worker/tracing/kernel_statistics.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace longwire::worker {
namespace {

using statistics::Add;
using statistics::KernelSlot;

// All of a kernel's first launches are timed, then few (timed_pace.h).
constexpr uint64_t kFirstTimed = 8;
constexpr size_t kKernelLimit = 8192;  // that are told apart
constexpr size_t kBlockLimit = 32;     // of one function

template <size_t kSize>
void CopyText(const std::string& text, char (&into)[kSize]) {
  const size_t bytes = std::min(text.size(), kSize - 1);
  std::memcpy(into, text.data(), bytes);
  into[bytes] = 0;
}

uint32_t AttributeOf(const DriverTable& driver, CUfunction_attribute attribute, CUfunction handle) {
  int value = 0;
  const bool known = driver.cuFuncGetAttribute(&value, attribute, handle) == CUDA_SUCCESS;
  return known && value > 0 ? static_cast<uint32_t>(value) : 0;
}

uint32_t AttributeOf(const DriverTable& driver, CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  const bool known = driver.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS;
  return known && value > 0 ? static_cast<uint32_t>(value) : 0;
}

}  // namespace

void KernelStatistics::Take(std::shared_ptr<statistics::Page> page) {
  base::MutexLock lock(mutex_);
  next_ = std::move(page);
  version_.fetch_add(1, std::memory_order_release);
}

void KernelStatistics::Switch() {
  for (const std::shared_ptr<Function>& function : uses_.functions.All()) {
    function->counted.clear();
  }
  kernels_by_key_.clear();
  slots_ = 0;
  base::MutexLock lock(mutex_);
  followed_ = version_.load();
  page_ = next_;
  kernels_ = page_ != nullptr && page_->kernels_on() != 0;
}

void KernelStatistics::CountStream(const Stream& stream, bool late, size_t launches) {
  if (late) Count(statistics::Count::kLateLaunches);
  if (last_stream_ == 0) last_stream_ = stream.id;
  several_streams_ |= stream.id != last_stream_;
  if (several_streams_) Count(statistics::Count::kStreamLaunches, launches);
  const bool legacy = stream.kind == StreamKind::kLegacy;
  const bool turns = stream.id != last_stream_ && legacy != (last_kind_ == StreamKind::kLegacy) &&
                     stream.kind != StreamKind::kNonBlocking &&
                     last_kind_ != StreamKind::kNonBlocking;
  if (turns) Count(statistics::Count::kLegacyTurns);
  last_stream_ = stream.id;
  last_kind_ = stream.kind;
}

void KernelStatistics::Count(const Stream& stream, bool late,
                             std::span<CountedKernel* const> kernels) {
  uint64_t others = 0;
  for (CountedKernel* kernel : kernels) {
    if (kernel->slot == nullptr) {
      ++others;
    } else {
      Add(kernel->slot->launches, 1);
    }
  }
  if (others != 0) Count(statistics::Count::kOtherLaunches, others);
  if (!kernels.empty()) CountStream(stream, late, kernels.size());
}

void KernelStatistics::CountCopy(bool up, bool pinned, uint64_t bytes) {
  using statistics::Count;
  if (!on() || bytes < statistics::kLargeCopy) return;
  if (pinned) {
    this->Count(Count::kPinnedCopies);
    return this->Count(Count::kPinnedBytes, bytes);
  }
  this->Count(up ? Count::kCopiesUp : Count::kCopiesDown);
  this->Count(up ? Count::kBytesUp : Count::kBytesDown, bytes);
}

void KernelStatistics::SetNextTimed(CountedKernel* kernel) {
  const uint64_t launches = kernel->slot->launches.load(std::memory_order_relaxed);
  if (launches >= kFirstTimed) kernel->next_timed = launches + pace_.Distance(Spans::Now());
}

void KernelStatistics::Describe(const Function& function, const calls::lwLaunch& call,
                                CUfunction handle, const Context& context, KernelSlot* slot) const {
  const DriverTable& driver = uses_.driver;
  statistics::KernelShape& shape = slot->shape;
  const uint32_t block[3] = {call.block_x, call.block_y, call.block_z};
  std::ranges::copy(block, shape.block);
  shape.dynamic_shared = call.shared_bytes;
  shape.static_shared = AttributeOf(driver, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle);
  shape.registers = AttributeOf(driver, CU_FUNC_ATTRIBUTE_NUM_REGS, handle);
  shape.local_bytes = AttributeOf(driver, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, handle);
  const CUdevice device = context.driver_device;
  shape.multiprocessors = AttributeOf(driver, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  shape.threads_limit =
      AttributeOf(driver, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  shape.blocks_limit =
      AttributeOf(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, device);
  shape.registers_limit =
      AttributeOf(driver, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device);
  shape.shared_limit =
      AttributeOf(driver, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, device);
  shape.is_ptx = function.of_ptx ? 1 : 0;
  int blocks = 0;
  const auto threads = static_cast<int>(block[0] * block[1] * block[2]);
  CUresult result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, handle, threads,
                                                                       call.shared_bytes);
  if (result == CUDA_SUCCESS && blocks > 0) shape.active_blocks = static_cast<uint32_t>(blocks);
  CopyText(function.module, slot->module);
  CopyText(function.name, slot->name);
  slot->ready.store(1, std::memory_order_release);
}

// Null where there are far too many.
CountedKernel* KernelStatistics::Find(Function& function, const calls::lwLaunch& call,
                                      CUfunction handle, const Context& context) {
  if (CountedKernel* kernel = Counted(function, call)) return kernel;
  Key key{function.module,
          function.name,
          {call.block_x, call.block_y, call.block_z},
          call.shared_bytes};
  auto found = kernels_by_key_.find(key);
  if (found == kernels_by_key_.end()) {
    if (kernels_by_key_.size() == kKernelLimit) return nullptr;
    auto kernel = std::make_unique<CountedKernel>();
    std::ranges::copy(key.block, kernel->block);
    kernel->shared_bytes = call.shared_bytes;
    if (slots_ < statistics::kKernels) {
      kernel->slot = &page_->kernel(slots_++);
      Describe(function, call, handle, context, kernel->slot);
    }
    found = kernels_by_key_.emplace(std::move(key), std::move(kernel)).first;
  }
  // Of many blocks the first are found again.
  if (function.counted.size() == kBlockLimit) function.counted.pop_back();
  function.counted.push_back(found->second.get());
  return function.counted.back();
}

KernelStatistics::Launch::Launch(KernelStatistics& statistics, Stream& stream, Function& function,
                                 const calls::lwLaunch& call, CUfunction handle, uint64_t position)
    : statistics_(statistics),
      stream_(stream),
      blocks_(uint64_t{call.grid_x} * call.grid_y * call.grid_z),
      late_(IsLate(stream)) {
  kernel_ = statistics.Find(function, call, handle, *stream.context);
  if (kernel_ == nullptr || !kernel_->due()) return;
  if (statistics.read_position_ == position) read_ = statistics.read_;
  begin_ = statistics.uses_.spans.Mark(stream);
}

void KernelStatistics::Launch::Ends(bool launched) {
  Spans& spans = statistics_.uses_.spans;
  Spans::Place end;
  if (launched && begin_.clock != nullptr) end = spans.Mark(stream_);
  if (begin_.clock != nullptr && end.clock == nullptr) spans.Unmark(stream_, begin_);
  if (!launched) return;
  statistics_.CountStream(stream_, late_, 1);
  KernelSlot* slot = kernel_ == nullptr ? nullptr : kernel_->slot;
  if (slot == nullptr) return statistics_.Count(statistics::Count::kOtherLaunches);
  Add(slot->launches, 1);
  if (kernel_->due()) statistics_.SetNextTimed(kernel_);
  if (end.clock == nullptr) return;
  if (read_ != 0) {
    Add(slot->queued, 1);
    Add(slot->queueing, begin_.issued - std::min(begin_.issued, read_));
  }
  // The page stays while something of it is under way.
  auto measured = [slot, page = statistics_.page_, read = read_,
                   blocks = blocks_](const DeviceClock::Interval& at) {
    const uint64_t took = at.ended - std::min(at.started, at.ended);
    Add(slot->timed, 1);
    Add(slot->blocks, blocks);
    Add(slot->nanoseconds, took);
    slot->times[statistics::TimeBucket(took)].fetch_add(1, std::memory_order_relaxed);
    if (read == 0) return;
    Add(slot->begun, 1);
    Add(slot->beginning, at.started - std::min(at.started, read));
  };
  spans.WhenDone(stream_, begin_, end, std::move(measured));
}

}  // namespace longwire::worker
