#include "server/worker/memory/array_bytes.h"

#include <algorithm>
#include <bit>

#include "base/memory_sizes.h"
#include "base/texel_bytes.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kSmallUnit = 512;
constexpr uint64_t kLarge = uint64_t{1} << 20;  // from here on an allocation has its own pages
constexpr uint64_t kRowUnit = 64;
constexpr uint64_t kRowsOfSmallBlock = 8, kRowsOfLargeBlock = 128,
                   kSlicesOfLargeBlock = 16;  // of a block

// What a context has at first, and is not charged for.
constexpr uint64_t kStackBytes = 1024;  // of each thread
constexpr uint64_t kPrintBytes = 8650752;
constexpr uint64_t kHeapBytes = uint64_t{8} << 20;

// Formats whose channels are stored together, or that are compressed.
uint64_t PackedTexelBytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
      return 1;
    case CU_AD_FORMAT_NV12:
    case CU_AD_FORMAT_NV16:
    case CU_AD_FORMAT_YUY2:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
      return 2;
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT_101010_2:
      return 4;
    default:
      break;
  }
  bool compressed = format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
  return compressed ? 1 : 4 * sizeof(float);
}

uint64_t TexelBytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  uint64_t channel = base::ChannelBytes(static_cast<uint32_t>(shape.Format));
  if (channel == 0) return PackedTexelBytes(shape.Format);
  return channel * std::clamp(shape.NumChannels, 1u, 4u);
}

// A power of two up to `most`, then whole blocks of that size.
uint64_t InBlocks(uint64_t count, uint64_t least, uint64_t most) {
  if (count > most) return base::RoundUp(count, most);
  return std::max(std::bit_ceil(std::max<uint64_t>(count, 1)), least);
}

// UINT64_MAX when it is too much for any device.
uint64_t Product(uint64_t one, uint64_t other) {
  bool fits = one == 0 || other <= base::kMaxMemoryBytes / one;
  return fits ? one * other : UINT64_MAX;
}

uint64_t BeyondFirst(uint64_t value, uint64_t first) { return value - std::min(value, first); }

}  // namespace

uint64_t AllocatedBytes(uint64_t bytes) {
  if (bytes > base::kMaxMemoryBytes) return UINT64_MAX;
  return base::RoundUp(bytes, bytes < kLarge ? kSmallUnit : base::kDeviceGranularityBytes);
}

uint64_t ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels) {
  const uint64_t most = base::kMaxMemoryBytes;
  if (shape.Width > most || shape.Height > most || shape.Depth > most) return UINT64_MAX;
  bool layered = (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  uint64_t sum = 0;
  // Sizes are halved from level to level: after this many nothing gets smaller.
  for (unsigned level = 0; level < std::clamp(levels, 1u, 64u); ++level) {
    auto size = [&](uint64_t whole) { return std::max<uint64_t>(whole >> level, 1); };
    uint64_t row = base::RoundUp(size(shape.Width) * TexelBytes(shape), kRowUnit);
    uint64_t rows = InBlocks(size(shape.Height), kRowsOfSmallBlock, kRowsOfLargeBlock);
    uint64_t slices = layered ? std::max<uint64_t>(shape.Depth, 1)
                              : InBlocks(size(shape.Depth), 1, kSlicesOfLargeBlock);
    uint64_t bytes = Product(Product(row, rows), slices);
    if (bytes > most - sum) return UINT64_MAX;
    sum += bytes;
  }
  return AllocatedBytes(sum);
}

uint64_t LocalBytes(const DriverTable& driver, CUdevice device, uint64_t bytes_per_thread) {
  uint64_t beyond = BeyondFirst(bytes_per_thread, kStackBytes);
  if (beyond == 0) return 0;
  int processors = 0, threads = 0;
  driver.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  driver.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  uint64_t at_once =
      static_cast<uint64_t>(std::max(processors, 1)) * static_cast<uint64_t>(std::max(threads, 1));
  return Product(at_once, beyond);
}

uint64_t LimitBytes(const DriverTable& driver, CUdevice device, CUlimit limit, uint64_t value) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return LocalBytes(driver, device, value);
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return BeyondFirst(value, kPrintBytes);
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return BeyondFirst(value, kHeapBytes);
    default:
      return 0;  // no memory, or little of the driver's own
  }
}

}  // namespace longwire::worker
