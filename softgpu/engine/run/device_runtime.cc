// The CUDA runtime's functions for kernels: launches, streams, copies, memory, errors. What is
// launched runs in the order of the launches, whatever its stream, so events have nothing to do.
#include <array>
#include <bit>
#include <string>

#include "softgpu/engine/memory/device_heap.h"
#include "softgpu/engine/run/builtin_call.h"
#include "softgpu/engine/run/builtins.h"
#include "softgpu/engine/run/children.h"

namespace softgpu {
namespace {

constexpr uint64_t kTailStream = 3, kLastNamedStream = 4;  // cudaStreamTailLaunch and the others
constexpr uint64_t kObjectBase = 0x4c59000000000000;       // streams and events of kernels
constexpr uint32_t kNonBlocking = 1;                       // the only flag of a stream
constexpr uint32_t kDisableTiming = 2;                     // of an event, always wanted

std::atomic<uint64_t> objects_made{0};

struct Dimensions {
  uint32_t of[3] = {1, 1, 1};
};

Children& ChildrenOf(const Warp& w) { return *w.block->launch->children; }

uint64_t ThreadOf(const Warp& w, int lane) {
  return w.block->number * w.block->launch->threads + w.index * kLanes +
         static_cast<uint32_t>(lane);
}

bool IsObject(uint64_t handle) { return handle - kObjectBase < objects_made.load(); }
bool IsStream(uint64_t handle) { return handle <= kLastNamedStream || IsObject(handle); }

// Calls f(lane) for each lane; what it answers is the call's result and the thread's last error.
template <class F>
void ForEachCall(Warp& w, const Instruction& i, F f) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    DeviceError error = f(lane);
    ChildrenOf(w).SetError(ThreadOf(w, lane), error);
    Result<uint32_t>(w, i, lane, static_cast<uint32_t>(error));
  }
}

// Stores through a pointer argument; a bad one is the kernel's fault.
void StorePointer(Warp& w, const Instruction& i, uint64_t address, uint64_t value) {
  if (!w.arena->Allows(address, sizeof value, w.device) &&
      !w.private_memory->Contains(address, sizeof value)) {
    return Fault(w, i, kIllegalAddress, "a result's address is not mapped");
  }
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

// (kernel, grid, block, dynamic shared memory): the address of the parameters, 0 after an error.
void GetParameterBuffer(Warp& w, const Instruction& i) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    LaunchConfig config = w.block->launch->config;
    config.cooperative = false;
    std::fill(std::begin(config.cluster), std::end(config.cluster), 0);
    auto grid = Argument<Dimensions>(w, i, lane, 1), block = Argument<Dimensions>(w, i, lane, 2);
    std::copy(std::begin(grid.of), std::end(grid.of), config.grid);
    std::copy(std::begin(block.of), std::end(block.of), config.block);
    config.dynamic_shared_bytes = Argument<uint32_t>(w, i, lane, 3);
    const CodeModule& module = *w.block->launch->kernel->module;
    const Kernel* kernel = module.FindKernel(Argument<uint64_t>(w, i, lane, 0));
    uint64_t buffer = 0;
    DeviceError error = kernel == nullptr
                            ? kDeviceInvalidFunction
                            : ChildrenOf(w).Prepare(*kernel, std::move(config), &buffer);
    ChildrenOf(w).SetError(ThreadOf(w, lane), error);
    Result(w, i, lane, buffer);
  }
}

// (parameters, stream)
void LaunchDevice(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    uint64_t stream = Argument<uint64_t>(w, i, lane, 1);
    if (!IsStream(stream)) return kDeviceInvalidHandle;
    return ChildrenOf(w).Launch(Argument<uint64_t>(w, i, lane, 0), stream == kTailStream);
  });
}

DeviceError AddBytes(Warp& w, ChildWork work, uint64_t stream) {
  if (!IsStream(stream)) return kDeviceInvalidHandle;
  if (work.bytes == 0) return kDeviceSuccess;
  work.config.device = w.block->launch->config.device;
  return ChildrenOf(w).Add(std::move(work), stream == kTailStream);
}

// (target, source, bytes, kind, stream)
void CopyAsync(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    ChildWork work;
    work.kind = ChildWork::Kind::kCopy;
    work.target = Argument<uint64_t>(w, i, lane, 0);
    work.source = Argument<uint64_t>(w, i, lane, 1);
    work.bytes = Argument<uint64_t>(w, i, lane, 2);
    return AddBytes(w, std::move(work), Argument<uint64_t>(w, i, lane, 4));
  });
}

// (target, value, bytes, stream)
void FillAsync(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    ChildWork work;
    work.kind = ChildWork::Kind::kFill;
    work.target = Argument<uint64_t>(w, i, lane, 0);
    work.value = Argument<int>(w, i, lane, 1);
    work.bytes = Argument<uint64_t>(w, i, lane, 2);
    return AddBytes(w, std::move(work), Argument<uint64_t>(w, i, lane, 3));
  });
}

// (address of the handle, flags)
template <uint32_t kFlags>
void CreateObject(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    if (Argument<uint32_t>(w, i, lane, 1) != kFlags) return kDeviceInvalidValue;
    StorePointer(w, i, Argument<uint64_t>(w, i, lane, 0), kObjectBase + objects_made++);
    return kDeviceSuccess;
  });
}

// (object, …): nothing is to be done.
void UseObject(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    return IsStream(Argument<uint64_t>(w, i, lane, 0)) ? kDeviceSuccess : kDeviceInvalidHandle;
  });
}

// (address of the pointer, bytes)
void Malloc(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    DeviceHeap& heap = w.block->launch->kernel->module->heap();
    uint64_t address = heap.Allocate(Argument<uint64_t>(w, i, lane, 1));
    if (address == 0) return kDeviceOutOfMemory;
    StorePointer(w, i, Argument<uint64_t>(w, i, lane, 0), address);
    return kDeviceSuccess;
  });
}

void Free(Warp& w, const Instruction& i) {
  ForEachCall(w, i, [&](int lane) {
    uint64_t address = Argument<uint64_t>(w, i, lane, 0);
    DeviceHeap& heap = w.block->launch->kernel->module->heap();
    return address == 0 || heap.Free(address) ? kDeviceSuccess : kDeviceInvalidPointer;
  });
}

template <bool kForget>
void LastError(Warp& w, const Instruction& i) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    DeviceError error = ChildrenOf(w).LastError(ThreadOf(w, lane), kForget);
    Result<uint32_t>(w, i, lane, static_cast<uint32_t>(error));
  }
}

struct ErrorText {
  int error;
  const char *name, *text;
};
constexpr ErrorText kErrorTexts[] = {
    {kDeviceSuccess, "cudaSuccess", "no error"},
    {kDeviceInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kDeviceOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {kDeviceInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {kDeviceInvalidPointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {kDeviceLaunchTooDeep, "cudaErrorLaunchMaxDepthExceeded",
     "launch would exceed maximum depth of nested launches"},
    {kDeviceTooManyPending, "cudaErrorLaunchPendingCountExceeded",
     "launch failed due to insufficient pending launch resources"},
    {kDeviceInvalidFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {kDeviceInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {-1, "unrecognized error code", "unrecognized error code"},
};

// Copies of texts that kernels can read, made once and kept.
struct KernelTexts {
  base::Mutex mutex{base::ranks::kSoftgpuKernelTexts};
  std::map<const char*, uint64_t> addresses LONGWIRE_GUARDED_BY(mutex);
};

uint64_t TextAddress(const char* text) {
  static auto* texts = new KernelTexts;
  base::MutexLock lock(texts->mutex);
  uint64_t& address = texts->addresses[text];
  if (address == 0) {
    const size_t bytes = std::strlen(text) + 1;
    address = PrivateMemory::Get().Allocate(bytes);
    if (address != 0) std::memcpy(reinterpret_cast<void*>(address), text, bytes);
  }
  return address;
}

template <bool kName>
void GetErrorText(Warp& w, const Instruction& i) {
  for (uint32_t m = w.exec; m != 0; m &= m - 1) {
    int lane = std::countr_zero(m);
    const int error = Argument<int>(w, i, lane, 0);
    const ErrorText* found = std::find_if(std::begin(kErrorTexts), std::end(kErrorTexts) - 1,
                                          [error](auto& one) { return one.error == error; });
    Result(w, i, lane, TextAddress(kName ? found->name : found->text));
  }
}

struct Builtin {
  std::string_view name;
  Handler handler;
};
// Those of CUDA 12 and later, by what follows __cudaCDP2. There is no synchronisation any more.
constexpr std::array kBuiltins = {
    Builtin{"EventCreateWithFlags", CreateObject<kDisableTiming>},
    Builtin{"EventDestroy", UseObject},
    Builtin{"EventRecord", UseObject},
    Builtin{"EventRecordWithFlags", UseObject},
    Builtin{"Free", Free},
    Builtin{"GetErrorName", GetErrorText<true>},
    Builtin{"GetErrorString", GetErrorText<false>},
    Builtin{"GetLastError", LastError<true>},
    Builtin{"GetParameterBufferV2", GetParameterBuffer},
    Builtin{"LaunchDeviceV2", LaunchDevice},
    Builtin{"Malloc", Malloc},
    Builtin{"MemcpyAsync", CopyAsync},
    Builtin{"MemsetAsync", FillAsync},
    Builtin{"PeekAtLastError", LastError<false>},
    Builtin{"StreamCreateWithFlags", CreateObject<kNonBlocking>},
    Builtin{"StreamDestroy", UseObject},
    Builtin{"StreamWaitEvent", UseObject},
};

}  // namespace

Handler FindDeviceRuntime(std::string_view name) {
  constexpr std::string_view kPrefix = "__cudaCDP2", kPerThread = "_ptsz";
  if (!name.starts_with(kPrefix)) return nullptr;
  name.remove_prefix(kPrefix.size());
  if (name.ends_with(kPerThread)) name.remove_suffix(kPerThread.size());
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return builtin.handler;
  }
  return nullptr;
}

}  // namespace softgpu
