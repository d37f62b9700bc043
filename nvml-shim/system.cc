// Beginning and end, versions, errors in words, what does not belong to a device.
#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "nvml-shim/state.h"
#include "nvml-shim/text.h"

namespace longwire::nvml {
namespace {

constexpr const char* kErrors[] = {
    "Success",
    "NVML is not initialized",
    "Invalid argument",
    "Not supported",
    "No permission",
    "Already initialized",
    "Not found",
    "The buffer is too small",
    "Not enough power",
    "No driver: no Longwire server is set, or none answers",
    "Timeout",
    "Interrupt problem",
    "NVML is not found",
    "The function is not found",
    "The inforom is corrupted",
    "The GPU is lost: its server does not answer any more",
    "The GPU has to be reset",
    "Blocked by the operating system",
    "Driver and library are of different versions",
    "In use",
    "Out of memory",
    "No data",
    "Not supported while ECC is enabled",
    "Out of resources",
    "The frequency is not supported",
    "Wrong version of an argument",
    "Deprecated",
    "Not ready",
    "No GPU is found",
    "Invalid state",
    "This kind of reset is not supported",
};

nvmlReturn_t Release(const char* before, char* version, unsigned length) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (view->driver_release.empty()) return NVML_ERROR_NOT_SUPPORTED;
  return CopyText(before + view->driver_release, version, length);
}

// Zero of what only the GPU's host has.
nvmlReturn_t None(unsigned* count) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlInit_v2() { return AddUser(); }
NVML_EXPORT nvmlReturn_t nvmlInit() { return AddUser(); }

NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  bool known = (flags & ~(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH)) == 0;
  return known ? AddUser() : NVML_ERROR_INVALID_ARGUMENT;
}

NVML_EXPORT nvmlReturn_t nvmlShutdown() { return RemoveUser(); }

NVML_EXPORT const char* nvmlErrorString(nvmlReturn_t result) {
  auto code = static_cast<size_t>(result);
  return code < std::size(kErrors) ? kErrors[code] : "Unknown error";
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return Release("", version, length);
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return Release("13.", version, length);
}

// As our libcuda.so.1 answers.
NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = CUDA_VERSION;
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

// Cut to the caller's size, as the interface says.
NVML_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  for (const wire::ViewedDevice& device : view->devices) {
    auto found = std::ranges::find(device.processes, pid, &wire::ViewedProcess::pid);
    if (found == device.processes.end()) continue;
    return CopyText(found->program.substr(0, length - 1), name, length);
  }
  return NVML_ERROR_NOT_FOUND;
}

NVML_EXPORT nvmlReturn_t nvmlUnitGetCount(unsigned* count) { return None(count); }
NVML_EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned* count) { return None(count); }
NVML_EXPORT nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned* count) { return None(count); }
NVML_EXPORT nvmlReturn_t nvmlSystemGetHicVersion(unsigned* count, void*) { return None(count); }

}  // namespace longwire::nvml
