#include "softgpu/driver/driver.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "softgpu/driver/address_space.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/link.h"
#include "softgpu/driver/memory_pool.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/peers.h"
#include "softgpu/driver/stream.h"
#include "softgpu/engine/engine.h"

namespace softgpu {
namespace {

constexpr size_t kDefaultMemory = size_t{4} << 30;  // bytes per device

// The descriptor that stands for standard error as it was at the first call.
int KeepErrorOutput() {
  static const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return kept >= 0 ? kept : STDERR_FILENO;
}

uint64_t Setting(const char* name, uint64_t fallback, uint64_t smallest, uint64_t largest) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  uint64_t value = strtoull(text, &end, 0);
  if (*end != '\0' || value < smallest || value > largest) {
    Remark("%s=%s is not a number from %llu to %llu; using %llu", name, text,
           static_cast<unsigned long long>(smallest), static_cast<unsigned long long>(largest),
           static_cast<unsigned long long>(fallback));
    return fallback;
  }
  return value;
}

std::unique_ptr<Device> MakeDevice(int ordinal, size_t count, size_t total_bytes) {
  auto device = std::make_unique<Device>();
  device->ordinal = ordinal;
  std::string number = count > 1 ? " " + std::to_string(ordinal) : "";
  device->name = "Software device" + number + " (PTX interpreter)";
  // A fixed identity per ordinal, so that CUDA_VISIBLE_DEVICES and ledgers can rely on it.
  memcpy(device->uuid.bytes, "softgpu-device-", 15);
  device->uuid.bytes[15] = static_cast<char>(ordinal);
  snprintf(device->pci_bus_id, sizeof device->pci_bus_id, "0000:%02X:00.0", ordinal + 1);
  device->total_bytes = total_bytes;
  device->default_pool = std::make_shared<MemoryPool>();
  device->default_pool->device = ordinal;
  return device;
}

// Codes that poison every context of the process natively.
bool IsFault(int code) {
  switch (code) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

}  // namespace

Driver& Driver::Get() {
  static auto* driver = new Driver;
  return *driver;
}

CUresult Driver::Initialize() {
  std::lock_guard lock(mutex);
  if (forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (initialized) return CUDA_SUCCESS;
  KeepErrorOutput();
  size_t count = Setting("LONGWIRE_SOFTWARE_DEVICES", 1, 1, kMaxDevices);
  size_t bytes =
      Setting("LONGWIRE_SOFTGPU_MEMORY", kDefaultMemory, kChunkGranularity, uint64_t{1} << 46) /
      kChunkGranularity * kChunkGranularity;
  PhysicalMemory::Get().SetTotals(std::vector<size_t>(count, bytes));
  for (size_t i = 0; i < count; ++i) {
    devices.push_back(MakeDevice(static_cast<int>(i), count, bytes));
    pools.Add(devices[i]->default_pool);
    devices[i]->current_pool = reinterpret_cast<CUmemoryPool>(devices[i]->default_pool.get());
    devices[i]->primary = MakeContext(static_cast<int>(i), true);
  }
  pthread_atfork(nullptr, nullptr, [] { Get().forked = true; });
  initialized = true;
  return CUDA_SUCCESS;
}

Device* Driver::FindDevice(CUdevice ordinal) {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) return nullptr;
  return devices[ordinal].get();
}

void Driver::Fail(Context& context, int code, const std::string& message) {
  Remark("error %d: %s", code, message.c_str());
  int none = 0;
  if (IsFault(code)) {
    fault.compare_exchange_strong(none, code);
  } else {
    context.late_error.compare_exchange_strong(none, code);
  }
}

bool& InHostFunction() {
  thread_local bool inside = false;
  return inside;
}

CUresult Enter() {
  Driver& driver = Driver::Get();
  if (!driver.initialized || driver.forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (InHostFunction()) return CUDA_ERROR_NOT_PERMITTED;
  return static_cast<CUresult>(driver.fault.load());
}

CUresult Enter(Context** context) {
  TRY(Enter());
  Context* current = CurrentContext();
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current->home;
  return current->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult ResolveContext(CUcontext handle, Context** context) {
  if (handle == nullptr) {
    TRY(Enter(context));
    *context = CurrentContext();
    return CUDA_SUCCESS;
  }
  TRY(Enter());
  auto found = Driver::Get().contexts.Find(handle);
  if (!found) return CUDA_ERROR_INVALID_CONTEXT;
  *context = found.get();
  return found->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Context* MakeContext(int device, bool primary) {
  Driver& driver = Driver::Get();
  auto context = std::make_shared<Context>();
  context->device = device;
  context->primary = primary;
  context->home = context.get();
  context->multiprocessors = DeviceShape::kMultiprocessors;
  context->id = driver.next_id++;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;  // bytes, native defaults
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = size_t{1} << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = size_t{8} << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = kPendingLaunches;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  context->legacy_stream = std::make_shared<Stream>(context.get(), CU_STREAM_DEFAULT, 0, true);
  context->streams.push_back(context->legacy_stream);
  return driver.contexts.Add(std::move(context));
}

void TearDown(Context& context) {
  Driver& driver = Driver::Get();
  EndGreenContextsOf(context);
  context.cancelled = true;
  SynchronizeContext(context);
  ForgetPeers(context);
  for (auto& module : driver.modules.All()) {
    if (module->context == &context) UnloadModule(*module);
  }
  ForgetInLibraries(context);
  ForgetArrays(context);
  for (auto& stream : driver.streams.All()) {
    if (&stream->context() == &context) driver.streams.Remove(stream.get());
  }
  for (auto& event : driver.events.All()) {
    if (event->context == &context) driver.events.Remove(event.get());
  }
  {
    std::lock_guard lock(driver.mutex);
    for (auto& stream : context.streams) {
      stream->capture.reset();
      CloseStream(*stream);
    }
    context.streams.clear();
    context.legacy_stream = std::make_shared<Stream>(&context, CU_STREAM_DEFAULT, 0, true);
    context.streams.push_back(context.legacy_stream);
  }
  AddressSpace::Get().FreeAllOf(&context);
  context.late_error = 0;
  context.cancelled = false;
}

void Remark(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string line = "softgpu: " + std::string(format) + "\n";
  vdprintf(KeepErrorOutput(), line.c_str(), arguments);
  va_end(arguments);
}

CUresult Refuse(const char* name) {
  static auto* named = new std::set<std::string>;
  static auto* mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  if (named->insert(name).second) {
    Remark("%s is not supported by the software device", name);
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace softgpu
