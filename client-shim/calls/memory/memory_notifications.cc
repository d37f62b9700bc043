// Notifications of devices. The only kind that there is tells a program that it is over a memory
// budget, which no driver for Linux gives it: registrations are kept and never called.
#include "client-shim/context/properties.h"
#include "client-shim/support/handle_table.h"
#include "client-shim/support/never_destroyed.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

struct Registration {
  uint64_t table_index = 0;
  CUdevice device = 0;
};
using RegistrationTable = HandleTable<Registration, HandleKind::kNotification>;

RegistrationTable& Registrations() {
  static NeverDestroyed<RegistrationTable> table;
  return *table;
}

}  // namespace

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc,
                                           void* userData, CUasyncCallbackHandle* callback) {
  if (callbackFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (FindDevice(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Registration* made = Registrations().New();
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->device = device;
  *callback = reinterpret_cast<CUasyncCallbackHandle>(Registrations().Publish(made));
  return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback) {
  Registration* found = Registrations().Find(reinterpret_cast<uint64_t>(callback));
  if (found == nullptr || found->device != device || !Registrations().Retire(found)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Registrations().Recycle(found);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim::hand
