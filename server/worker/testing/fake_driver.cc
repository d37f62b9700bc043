#include "server/worker/testing/fake_driver.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/try.h"
#include "server/worker/testing/fake_graphs.h"

namespace longwire::worker::testing {
namespace {

FakeDriver* newest = nullptr;

struct FakeEvent {
  std::atomic<bool> reached{false};
};

std::string Name(FakeDriver::StreamState& stream) { return "s" + std::to_string(stream.index); }

void WaitWhile(const std::atomic<bool>& held) {
  while (held) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

template <class Handle>
Handle Made() {
  static std::atomic<uint64_t> next{0x1000};
  return reinterpret_cast<Handle>(next.fetch_add(16));
}

CUresult LaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      unsigned, CUstream stream, void**, void** extra) {
  FakeDriver& driver = FakeDriver::Get();
  if (driver.launch_result != 0) return static_cast<CUresult>(driver.launch_result.load());
  if (driver.on_launch) {
    auto* parameters = extra != nullptr ? static_cast<const std::byte*>(extra[1]) : nullptr;
    size_t bytes = extra != nullptr ? *static_cast<size_t*>(extra[3]) : 0;
    LONGWIRE_TRY(driver.on_launch({parameters, bytes}));
  }
  int first = extra != nullptr ? *static_cast<unsigned char*>(extra[1]) : -1;
  std::string name = Name(driver.StateOf(stream));
  return driver.Issue(stream, "launch " + name + " " + std::to_string(first), [] { return true; });
}

CUresult Copy(CUstream stream, const char* what, void* to, const void* from, size_t bytes) {
  FakeDriver& driver = FakeDriver::Get();
  CUresult result = driver.Issue(stream, std::string(what) + " " + Name(driver.StateOf(stream)),
                                 [=] { return std::memcpy(to, from, bytes) != nullptr; });
  WaitWhile(driver.hold_copies);
  return result;
}

void FillMemory(DriverTable& table) {
  table.cuMemHostAlloc = [](void** memory, size_t bytes, unsigned) {
    *memory = std::aligned_alloc(4096, bytes);
    return CUDA_SUCCESS;
  };
  table.cuMemHostGetDevicePointer_v2 = [](CUdeviceptr* address, void* memory, unsigned) {
    const uint64_t moved = FakeDriver::Get().moves_registered ? uint64_t{1} << 40 : 0;
    *address = reinterpret_cast<CUdeviceptr>(memory) + moved;
    return CUDA_SUCCESS;
  };
  table.cuMemFreeHost = [](void* memory) {
    std::free(memory);
    return CUDA_SUCCESS;
  };
  table.cuMemHostRegister_v2 = [](void*, size_t, unsigned) {
    return FakeDriver::Get().Note("pin");
  };
  table.cuMemHostUnregister = [](void*) { return FakeDriver::Get().Note("unpin"); };
  table.cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                      unsigned long long) {
    if (FakeDriver::Get().maps_fail) return CUDA_ERROR_OUT_OF_MEMORY;
    return FakeDriver::Get().Note("map");
  };
  table.cuMemUnmap = [](CUdeviceptr, size_t) { return FakeDriver::Get().Note("unmap"); };
  table.cuMemSetAccess = [](CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
    return CUDA_SUCCESS;
  };
  table.cuMemRelease = [](CUmemGenericAllocationHandle) {
    return FakeDriver::Get().Note("release");
  };
  table.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*,
                                            CUmemAllocationHandleType) {
    WaitWhile(FakeDriver::Get().hold_imports);
    *handle = 7;
    return FakeDriver::Get().Note("import");
  };
  table.cuArrayCreate_v2 = [](CUarray* array, const CUDA_ARRAY_DESCRIPTOR*) {
    *array = Made<CUarray>();
    return CUDA_SUCCESS;
  };
  table.cuArrayDestroy = [](CUarray) { return FakeDriver::Get().Note("destroy array"); };
  table.cuMipmappedArrayDestroy = [](CUmipmappedArray) {
    return FakeDriver::Get().Note("destroy mipmapped array");
  };
  table.cuDeviceGetDevResource = [](CUdevice, CUdevResource* resource, CUdevResourceType type) {
    *resource = {};
    resource->type = type;
    return CUDA_SUCCESS;
  };
  table.cuDevResourceGenerateDesc = [](CUdevResourceDesc* descriptor, CUdevResource*, unsigned) {
    *descriptor = Made<CUdevResourceDesc>();
    return FakeDriver::Get().Note("descriptor");
  };
  table.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return Copy(stream, "upload", reinterpret_cast<void*>(to), from, bytes);
  };
  table.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return Copy(stream, "download", to, reinterpret_cast<void*>(from), bytes);
  };
}

void FillStores(DriverTable& table) {
  table.cuStreamWriteValue64_v2 = [](CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned) {
    return FakeDriver::Get().Issue(stream, "", [=] {
      reinterpret_cast<std::atomic<uint64_t>*>(address)->store(value);
      return true;
    });
  };
  table.cuStreamWriteValue32_v2 = [](CUstream stream, CUdeviceptr address, cuuint32_t value,
                                     unsigned) {
    return FakeDriver::Get().Issue(stream, "", [=] {
      reinterpret_cast<std::atomic<uint32_t>*>(address)->store(value);
      return true;
    });
  };
  table.cuStreamBatchMemOp_v2 = [](CUstream stream, unsigned count,
                                   CUstreamBatchMemOpParams* operations, unsigned) {
    if (count >= 256) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<CUstreamBatchMemOpParams> all(operations, operations + count);
    return FakeDriver::Get().Issue(stream, "", [all] {
      for (const CUstreamBatchMemOpParams& one : all) {
        const auto& write = one.writeValue;
        if (one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
          reinterpret_cast<std::atomic<uint64_t>*>(write.address)->store(write.value64);
        } else {
          reinterpret_cast<std::atomic<uint32_t>*>(write.address)->store(write.value);
        }
        FakeDriver::Get().stores.push_back(write.address);
      }
      return true;
    });
  };
}

void FillStreams(DriverTable& table) {
  table.cuStreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    auto result = static_cast<CUresult>(FakeDriver::Get().stream_result.load());
    if (result == CUDA_SUCCESS) *stream = FakeDriver::Get().NewStream();
    return result;
  };
  table.cuStreamDestroy_v2 = [](CUstream stream) {
    FakeDriver& driver = FakeDriver::Get();
    return driver.Note("destroy " + Name(driver.StateOf(stream)));
  };
  table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  table.cuStreamQuery = [](CUstream stream) { return FakeDriver::Get().Query(stream); };
  table.cuStreamSynchronize = [](CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    while ((result = FakeDriver::Get().Query(stream)) == CUDA_ERROR_NOT_READY) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return result;
  };
  table.cuEventElapsedTime_v2 = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = 1;
    FakeDriver& fake = FakeDriver::Get();
    if (--fake.not_elapsed < 0) return CUDA_SUCCESS;
    std::this_thread::sleep_for(std::chrono::milliseconds(fake.not_elapsed_ms));
    return CUDA_ERROR_NOT_READY;
  };
  table.cuEventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(new FakeEvent);
    return CUDA_SUCCESS;
  };
  table.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };  // leaked: a wait may hold it
  table.cuEventRecord = [](CUevent event, CUstream stream) {
    auto* fake = reinterpret_cast<FakeEvent*>(event);
    fake->reached = false;
    FakeDriver& driver = FakeDriver::Get();
    return driver.Issue(stream, "record " + Name(driver.StateOf(stream)), [fake] {
      fake->reached = true;
      return true;
    });
  };
  table.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    auto* fake = reinterpret_cast<FakeEvent*>(event);
    FakeDriver& driver = FakeDriver::Get();
    return driver.Issue(stream, "wait " + Name(driver.StateOf(stream)),
                        [fake] { return fake->reached.load(); });
  };
}

void FillModules(DriverTable& table) {
  table.cuModuleLoadDataEx = [](CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
    WaitWhile(FakeDriver::Get().hold_loads);
    *module = Made<CUmodule>();
    return CUDA_SUCCESS;
  };
  table.cuModuleUnload = [](CUmodule) {
    WaitWhile(FakeDriver::Get().hold_unloads);
    return FakeDriver::Get().Note("unload");
  };
  table.cuModuleGetFunctionCount = [](unsigned* count, CUmodule) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  table.cuModuleEnumerateFunctions = [](CUfunction* functions, unsigned, CUmodule) {
    functions[0] = Made<CUfunction>();
    return CUDA_SUCCESS;
  };
  table.cuFuncGetName = [](const char** name, CUfunction) {
    *name = "kernel";
    return CUDA_SUCCESS;
  };
  table.cuFuncGetParamInfo = [](CUfunction, size_t, size_t*, size_t*) {
    return CUDA_ERROR_INVALID_VALUE;
  };
  table.cuFuncLoad = [](CUfunction) {
    WaitWhile(FakeDriver::Get().hold_function_loads);
    ++FakeDriver::Get().function_loads;
    return CUDA_SUCCESS;
  };
  table.cuLaunchKernel = FakeDriver::Get().launch_kernel;
}

}  // namespace

FakeDriver& FakeDriver::Get() { return *newest; }

FakeDriver::FakeDriver() {
  newest = this;
  launch_kernel = &LaunchKernel;
  streams_.push_back(std::make_unique<StreamState>());
}

FakeDriver::~FakeDriver() { newest = nullptr; }

DriverTable FakeDriver::table() {
  DriverTable table{};
  table.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  table.cuCtxGetId = [](CUcontext, unsigned long long* id) {
    *id = 42;
    return CUDA_SUCCESS;
  };
  table.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  FillMemory(table);
  FillStreams(table);
  FillStores(table);
  FillModules(table);
  FillGraphs(table);
  return table;
}

FakeDriver::StreamState& FakeDriver::StateOf(CUstream stream) {
  // The handles are small numbers: the legacy stream's is 1, ours start at 16.
  auto value = reinterpret_cast<uint64_t>(stream);
  base::MutexLock lock(mutex_);
  return *streams_[value < 16 ? 0 : value - 16];
}

CUstream FakeDriver::NewStream() {
  base::MutexLock lock(mutex_);
  streams_.push_back(std::make_unique<StreamState>());
  streams_.back()->index = streams_.size() - 1;
  return reinterpret_cast<CUstream>(uint64_t{16} + streams_.size() - 1);
}

CUresult FakeDriver::Note(const std::string& text) {
  base::MutexLock lock(mutex_);
  log_.push_back(text);
  return static_cast<CUresult>(fault_.load());
}

CUresult FakeDriver::Issue(CUstream stream, const std::string& text,
                           std::function<bool()> operation) {
  StreamState& state = StateOf(stream);
  base::MutexLock lock(mutex_);
  if (fault_ != 0) return static_cast<CUresult>(fault_.load());
  if (!text.empty()) log_.push_back(text);
  state.operations.push_back(std::move(operation));
  RunAll();
  return CUDA_SUCCESS;
}

CUresult FakeDriver::Query(CUstream stream) {
  if (fault_ != 0) return static_cast<CUresult>(fault_.load());
  StreamState& state = StateOf(stream);
  base::MutexLock lock(mutex_);
  return state.operations.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

void FakeDriver::RunAll() {
  for (bool again = true; again;) {
    again = false;
    for (auto& stream : streams_) {
      while (!stream->stopped && !stream->operations.empty() && stream->operations.front()()) {
        stream->operations.pop_front();
        again = true;
      }
    }
  }
}

void FakeDriver::StopStream(size_t index) {
  base::MutexLock lock(mutex_);
  streams_[index]->stopped = true;
}

void FakeDriver::RunStream(size_t index) {
  base::MutexLock lock(mutex_);
  streams_[index]->stopped = false;
  RunAll();
}

void FakeDriver::Fault(CUresult code) { fault_ = code; }

std::vector<std::string> FakeDriver::log() {
  base::MutexLock lock(mutex_);
  return log_;
}

int FakeDriver::IndexOf(const std::string& text) {
  base::MutexLock lock(mutex_);
  auto found = std::find(log_.begin(), log_.end(), text);
  return found == log_.end() ? -1 : static_cast<int>(found - log_.begin());
}

}  // namespace longwire::worker::testing
