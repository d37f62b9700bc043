// Changing values: memory, utilization, the tenant's processes of this host.
#include <algorithm>

#include "nvml-shim/state.h"

namespace longwire::nvml {
namespace {

// Copies as many as the caller has room for. With less than that nothing is written but the number
// that it takes.
template <class Info, class Make>
nvmlReturn_t CopyProcesses(const Seen& seen, unsigned* count, Info* infos, Make make) {
  const std::vector<wire::ViewedProcess>& processes = seen.device->processes;
  auto needed = static_cast<unsigned>(processes.size());
  bool fits = *count >= needed && (infos != nullptr || needed == 0);
  *count = needed;
  if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::ranges::transform(processes, infos, make);
  return NVML_SUCCESS;
}

nvmlProcessInfo_v1_t MakeFirst(const wire::ViewedProcess& process) {
  return {process.pid, process.memory};
}

nvmlProcessInfo_t Make(const wire::ViewedProcess& process) {
  return {process.pid, process.memory, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
}

nvmlProcessDetail_v1_t MakeDetail(const wire::ViewedProcess& process) {
  return {process.pid, process.memory, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0};
}

template <class Info, class Make>
nvmlReturn_t Compute(nvmlDevice_t device, unsigned* count, Info* infos, Make make) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  return count == nullptr ? NVML_ERROR_INVALID_ARGUMENT : CopyProcesses(seen, count, infos, make);
}

// There are no graphics processes, and no shared contexts.
nvmlReturn_t None(nvmlDevice_t device, unsigned* count) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

// What is reserved counts as used here; the second version tells it apart.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  uint64_t total = seen.device->memory_total, free = seen.device->memory_free;
  *memory = {total, free, total - free};
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != NvmlVersion<nvmlMemory_v2_t>(2)) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  uint64_t total = seen.device->memory_total, free = seen.device->memory_free;
  uint64_t reserved = seen.device->memory_reserved;
  *memory = {memory->version, total, reserved, free, total - reserved - free};
  return NVML_SUCCESS;
}

// Over the last minute, by all tenants. Memory utilization is not measured.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                       nvmlUtilization_t* utilization) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (utilization == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *utilization = {seen.device->busy_percent, 0};
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                              nvmlProcessInfo_v1_t* infos) {
  return Compute(device, count, infos, MakeFirst);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                                 unsigned* count,
                                                                 nvmlProcessInfo_t* infos) {
  return Compute(device, count, infos, Make);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                                 unsigned* count,
                                                                 nvmlProcessInfo_t* infos) {
  return Compute(device, count, infos, Make);
}

#define LW_NO_PROCESSES(name)                                                  \
  NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned* count, void*) { \
    return None(device, count);                                                \
  }
LW_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
LW_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
LW_NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
LW_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
LW_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
LW_NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                               nvmlProcessDetailList_t* list) {
  if (list == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->version != NvmlVersion<nvmlProcessDetailList_t>(1)) {
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  }
  if (list->mode > NVML_PROCESS_MODE_MPS) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned* count = &list->numProcArrayEntries;
  if (list->mode != NVML_PROCESS_MODE_COMPUTE) return None(device, count);
  return Compute(device, count, list->procArray, MakeDetail);
}

}  // namespace longwire::nvml
