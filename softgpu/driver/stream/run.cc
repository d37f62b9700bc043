#include "softgpu/driver/stream/run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/module/module.h"
#include "softgpu/engine/memory/arena.h"

namespace softgpu {
namespace {

using std::chrono::microseconds;

constexpr size_t kMaxPendingLaunches = 1 << 16;  // of kernels; each has memory for parameters
constexpr int kPollsBeforeSleep = 256;
constexpr microseconds kLongestSleep{200};

// One side of a copy: rows of `pitch` bytes, slices of `slice` bytes.
struct Side {
  CUmemorytype type;
  uint64_t first;  // address
  size_t pitch;
  size_t slice;
  std::shared_ptr<Array> array = nullptr;  // of an array; null if it is gone
};

Side ArraySide(const CUDA_MEMCPY3D& c, bool source) {
  auto array = FindArray(source ? c.srcArray : c.dstArray);
  if (array == nullptr || !array->planes.empty()) return {CU_MEMORYTYPE_ARRAY, 0, 0, 0};
  size_t slice = array->row_bytes * array->rows;
  uint64_t first = array->address;
  first += source ? c.srcXInBytes + c.srcY * array->row_bytes + c.srcZ * slice
                  : c.dstXInBytes + c.dstY * array->row_bytes + c.dstZ * slice;
  return {CU_MEMORYTYPE_ARRAY, first, array->row_bytes, slice, std::move(array)};
}

// A single row may go on in the next one: offsets into arrays count bytes from the first texel.
bool FitsArray(const CUDA_MEMCPY3D& c, const Array& array, bool source) {
  auto fits = [](size_t offset, size_t count, size_t all) {
    return offset <= all && count <= all - offset;
  };
  size_t x = source ? c.srcXInBytes : c.dstXInBytes;
  size_t y = source ? c.srcY : c.dstY, z = source ? c.srcZ : c.dstZ;
  if (y == 0 && z == 0 && c.Height == 1 && c.Depth == 1) {
    return fits(x, c.WidthInBytes, array.bytes());
  }
  return fits(x, c.WidthInBytes, array.row_bytes) && fits(y, c.Height, array.rows) &&
         fits(z, c.Depth, array.slices);
}

Side MakeSide(const CUDA_MEMCPY3D& c, bool source) {
  auto type = source ? c.srcMemoryType : c.dstMemoryType;
  if (type == CU_MEMORYTYPE_ARRAY) return ArraySide(c, source);
  uint64_t base = type == CU_MEMORYTYPE_HOST
                      ? reinterpret_cast<uint64_t>(source ? c.srcHost : c.dstHost)
                      : (source ? c.srcDevice : c.dstDevice);
  size_t pitch = source ? c.srcPitch : c.dstPitch;
  if (pitch == 0) pitch = c.WidthInBytes;
  size_t height = source ? c.srcHeight : c.dstHeight;
  if (height == 0) height = c.Height;
  size_t slice = pitch * height;
  base += source ? c.srcXInBytes + c.srcY * pitch + c.srcZ * slice
                 : c.dstXInBytes + c.dstY * pitch + c.dstZ * slice;
  return {type, base, pitch, slice};
}

bool IsEmpty(const CUDA_MEMCPY3D& c) {
  return c.WidthInBytes == 0 || c.Height == 0 || c.Depth == 0;
}

// Bytes from the first to the last byte touched; 0 if that overflows.
uint64_t Extent(const CUDA_MEMCPY3D& c, const Side& side) {
  uint64_t slices, rows, extent;
  if (__builtin_mul_overflow(side.slice, c.Depth - 1, &slices) ||
      __builtin_mul_overflow(side.pitch, c.Height - 1, &rows) ||
      __builtin_add_overflow(slices, rows, &extent) ||
      __builtin_add_overflow(extent, c.WidthInBytes, &extent)) {
    return 0;
  }
  return extent;
}

// Copies use the memory's own device where it is a plain allocation.
bool CopyReaches(uint64_t address, uint64_t bytes, int device) {
  return Reachable(address, bytes, device) ||
         (AddressSpace::Get().IsPlain(address) && Arena::Get().Allows(address, bytes));
}

CUresult CheckSide(const CUDA_MEMCPY3D& c, bool source, int device) {
  Side side = MakeSide(c, source);
  if (side.type == CU_MEMORYTYPE_ARRAY) {
    if (side.array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return IsEmpty(c) || FitsArray(c, *side.array, source) ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_VALUE;
  }
  if (side.type < CU_MEMORYTYPE_HOST || side.type > CU_MEMORYTYPE_UNIFIED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (IsEmpty(c)) return CUDA_SUCCESS;
  uint64_t extent = Extent(c, side);
  if (extent == 0 || side.pitch < c.WidthInBytes || side.first == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool checked = side.type == CU_MEMORYTYPE_DEVICE || InArena(side.first);
  if (checked && !CopyReaches(side.first, extent, device)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// A device's engine takes a copy up some time after it was given; here it is made at once. Who
// wants to see what a program that waits for each copy loses lets it take longer.
microseconds LeastCopyTime() {
  static const microseconds time = [] {
    const char* text = getenv("LONGWIRE_SOFTGPU_COPY_MICROSECONDS");
    return microseconds(text == nullptr ? 0 : std::min(atol(text), 1'000'000L));
  }();
  return time;
}

Status RunCopy(const CopyOperation& operation) {
  const auto begun = std::chrono::steady_clock::now();
  CUDA_MEMCPY3D c = operation.copy;
  if (operation.staged) {
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = operation.staged->data();
    c.srcXInBytes = c.srcY = c.srcZ = c.srcPitch = c.srcHeight = 0;
  }
  if (IsEmpty(c)) return {};
  if (CheckCopy(c, operation.devices) != CUDA_SUCCESS) {
    return {CUDA_ERROR_ILLEGAL_ADDRESS, "a copy touches memory that is no longer mapped"};
  }
  Side from = MakeSide(c, true), to = MakeSide(c, false);
  for (size_t z = 0; z < c.Depth; ++z) {
    auto* source = reinterpret_cast<const char*>(from.first + z * from.slice);
    auto* target = reinterpret_cast<char*>(to.first + z * to.slice);
    if (from.pitch == c.WidthInBytes && to.pitch == c.WidthInBytes) {
      memmove(target, source, c.WidthInBytes * c.Height);
      continue;
    }
    for (size_t y = 0; y < c.Height; ++y) {
      memmove(target + y * to.pitch, source + y * from.pitch, c.WidthInBytes);
    }
  }
  if (LeastCopyTime().count() > 0) std::this_thread::sleep_until(begun + LeastCopyTime());
  return {};
}

Status RunFill(const CUDA_MEMSET_NODE_PARAMS& fill, int device) {
  if (CheckFill(fill, device) != CUDA_SUCCESS) {
    return {CUDA_ERROR_ILLEGAL_ADDRESS, "a memset touches memory that is no longer mapped"};
  }
  for (size_t y = 0; y < fill.height; ++y) {
    auto* row = reinterpret_cast<char*>(fill.dst + y * fill.pitch);
    switch (fill.elementSize) {
      case 1:
        memset(row, static_cast<int>(fill.value), fill.width);
        break;
      case 2:
        std::fill_n(reinterpret_cast<uint16_t*>(row), fill.width,
                    static_cast<uint16_t>(fill.value));
        break;
      default:
        std::fill_n(reinterpret_cast<uint32_t*>(row), fill.width, fill.value);
    }
  }
  return {};
}

template <class T>
bool Satisfied(uint64_t address, T value, unsigned flags) {
  T now = __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
  using Signed = std::make_signed_t<T>;
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<Signed>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return static_cast<T>(~(now | value)) != 0;
  }
}

// Polls, ever more slowly, until the value is there or the wait has become pointless.
Status RunWait(const CUstreamBatchMemOpParams& op, int device, const Context& context) {
  bool wide = op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
  const auto& wait = op.waitValue;
  microseconds sleep{10};
  for (int polls = 0; !context.cancelled && Driver::Get().fault == 0; ++polls) {
    if (!Reachable(wait.address, wide ? 8 : 4, device)) {
      return {CUDA_ERROR_ILLEGAL_ADDRESS, "a stream waits for a value in unmapped memory"};
    }
    if (wide ? Satisfied<uint64_t>(wait.address, wait.value64, wait.flags)
             : Satisfied<uint32_t>(wait.address, wait.value, wait.flags)) {
      break;
    }
    if (polls < kPollsBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(sleep * 2, kLongestSleep);
    }
  }
  return {};
}

Status RunBatch(const BatchMemoryOperation& batch, const Context& context) {
  for (const auto& op : batch.operations) {
    bool wide = op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    switch (op.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        if (Status status = RunWait(op, batch.device, context); !status.ok()) return status;
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (!Reachable(op.writeValue.address, wide ? 8 : 4, batch.device)) {
          return {CUDA_ERROR_ILLEGAL_ADDRESS, "a stream writes a value to unmapped memory"};
        }
        if (wide) {
          __atomic_store_n(reinterpret_cast<uint64_t*>(op.writeValue.address),
                           op.writeValue.value64, __ATOMIC_RELEASE);
        } else {
          __atomic_store_n(reinterpret_cast<uint32_t*>(op.writeValue.address), op.writeValue.value,
                           __ATOMIC_RELEASE);
        }
        break;
      default:  // flushes and barriers: every operation here is complete and visible when it ends
        break;
    }
  }
  return {};
}

Status RunKernel(const KernelOperation& op, Context& context) {
  auto cancelled = [&context] { return context.cancelled || Driver::Get().fault != 0; };
  const size_t pending = context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT];
  Status status = Launch(*op.function->info->kernel, op.config, op.parameters, cancelled,
                         static_cast<uint32_t>(std::min(pending, kMaxPendingLaunches)), &context);
  // A launch that was ended because of another's fault has no fault of its own.
  return !status.ok() && cancelled() ? Status{} : status;
}

}  // namespace

bool InArena(uint64_t address) { return address - Arena::Get().base() < Arena::Get().bytes(); }

bool Reachable(uint64_t address, uint64_t bytes, int device) {
  if (InArena(address)) {
    return bytes == 0 || Arena::Get().Allows(address, bytes, OnlyDevice(device));
  }
  auto found = AddressSpace::Get().Find(address);
  return found && found->kind == MemoryKind::kRegistered &&
         bytes <= found->bytes - (address - found->address);
}

bool IsPageable(uint64_t address) {
  return !InArena(address) && !AddressSpace::Get().Find(address).has_value();
}

uint64_t SourceAddress(const CUDA_MEMCPY3D& copy) { return MakeSide(copy, true).first; }
uint64_t TargetAddress(const CUDA_MEMCPY3D& copy) { return MakeSide(copy, false).first; }

CUresult CheckCopy(const CUDA_MEMCPY3D& copy, CopyDevices devices) {
  LONGWIRE_TRY(CheckSide(copy, true, devices.source));
  return CheckSide(copy, false, devices.target);
}

CUresult CheckFill(const CUDA_MEMSET_NODE_PARAMS& fill, int device) {
  unsigned unit = fill.elementSize;
  if ((unit != 1 && unit != 2 && unit != 4) || fill.dst % unit != 0 || fill.pitch % unit != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  uint64_t row, extent;
  if (__builtin_mul_overflow(fill.width, uint64_t{unit}, &row) ||
      __builtin_mul_overflow(fill.pitch, fill.height - 1, &extent) ||
      __builtin_add_overflow(extent, row, &extent) || (fill.height > 1 && fill.pitch < row) ||
      !Reachable(fill.dst, extent, device)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult CheckBatch(std::span<const CUstreamBatchMemOpParams> operations, int device) {
  for (const auto& op : operations) {
    const bool writes = op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
                        op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    // As cuda.h says of this version of the calls, and an H100's driver answered in batches.
    if (writes && operations.size() > 1 &&
        (op.writeValue.flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    switch (op.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        if (op.waitValue.address % 4 != 0 || !Reachable(op.waitValue.address, 4, device)) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        if (op.waitValue.address % 8 != 0 || !Reachable(op.waitValue.address, 8, device)) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

Status Run(const Operation& operation, Context& context) {
  if (auto* kernel = std::get_if<KernelOperation>(&operation)) return RunKernel(*kernel, context);
  if (auto* copy = std::get_if<CopyOperation>(&operation)) return RunCopy(*copy);
  if (auto* fill = std::get_if<FillOperation>(&operation)) return RunFill(fill->fill, fill->device);
  if (auto* batch = std::get_if<BatchMemoryOperation>(&operation)) {
    return RunBatch(*batch, context);
  }
  if (auto* host = std::get_if<HostOperation>(&operation)) {
    InHostFunction() = true;
    host->host.fn(host->host.userData);
    InHostFunction() = false;
  }
  return {};
}

}  // namespace softgpu
