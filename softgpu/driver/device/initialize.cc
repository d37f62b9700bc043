#include "softgpu/driver/device/initialize.h"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/memory_sizes.h"
#include "softgpu/driver/device/context.h"
#include "softgpu/driver/memory/memory_pool.h"
#include "softgpu/driver/memory/physical_memory.h"

namespace softgpu {
namespace {

constexpr size_t kDefaultMemory = size_t{4} << 30;  // bytes per device

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

}  // namespace

CUresult Initialize() {
  Driver& driver = Driver::Get();
  base::MutexLock lock(Driver::mutex);
  if (driver.forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (driver.initialized) return CUDA_SUCCESS;
  KeepErrorOutput();
  size_t count = Setting("LONGWIRE_SOFTWARE_DEVICES", 1, 1, kMaxDevices);
  size_t bytes = Setting("LONGWIRE_SOFTGPU_MEMORY", kDefaultMemory, kChunkGranularity,
                         longwire::base::kMaxMemoryBytes) /
                 kChunkGranularity * kChunkGranularity;
  PhysicalMemory::Get().SetTotals(std::vector<size_t>(count, bytes));
  for (size_t i = 0; i < count; ++i) {
    Device& device = *driver.devices.emplace_back(MakeDevice(static_cast<int>(i), count, bytes));
    driver.pools.Add(device.default_pool);
    device.current_pool = reinterpret_cast<CUmemoryPool>(device.default_pool.get());
    device.primary = MakeContext(static_cast<int>(i), true);
  }
  pthread_atfork(nullptr, nullptr, [] { Driver::Get().forked = true; });
  driver.initialized = true;
  return CUDA_SUCCESS;
}

}  // namespace softgpu
