// Event sets, in which no event ever occurs: the server's driver does not forward its events, and
// none can be registered.
#include <chrono>
#include <new>
#include <thread>

#include "nvml-shim/state.h"

namespace longwire::nvml {
namespace {

struct EventSet {};

nvmlReturn_t Wait(const EventSet* set, unsigned milliseconds) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return NVML_ERROR_TIMEOUT;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlEventSetCreate(EventSet** set) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *set = new (std::nothrow) EventSet;
  return *set == nullptr ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetFree(EventSet* set) {
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  delete set;
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait_v2(EventSet* set, void*, unsigned milliseconds) {
  return Wait(set, milliseconds);
}

NVML_EXPORT nvmlReturn_t nvmlEventSetWait(EventSet* set, void*, unsigned milliseconds) {
  return Wait(set, milliseconds);
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device,
                                                          unsigned long long* types) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (types == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *types = 0;
  return NVML_SUCCESS;
}

}  // namespace longwire::nvml
