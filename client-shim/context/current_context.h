// Which context a thread works in, and what private tables may ask about contexts and devices.
// Everything here is answered in the client, without waiting, from any thread. Before a successful
// cuInit there are no devices and no contexts.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

// The context on top of the calling thread's stack, nullptr when the stack is empty.
CUcontext CurrentContext();

// The handle of a device's primary context, without retaining or activating it: the same for the
// life of the process. nullptr if there is no such device.
CUcontext PrimaryContextHandle(CUdevice device);

// True if `context` is a handle that this shim gave out and that was not destroyed.
bool IsContext(CUcontext context);

// A number that no other context of this process has or had; *id is untouched and the result false
// for a handle that is none. A primary context that was reset gets a new number.
bool ContextUniqueId(CUcontext context, uint64_t* id);

// The device of a context; false for a handle that is none.
bool ContextDevice(CUcontext context, CUdevice* device);

// A number that no other stream of this process has or had. `stream` may be one of the default
// handles (nullptr, 1, 2); 2 is the calling thread's own. `context` nullptr is the current one.
bool StreamUniqueId(CUcontext context, CUstream stream, uint64_t* id);

// Called with the handle, from the thread that destroys, when a context dies: cuCtxDestroy, the
// last release of a primary context, or its reset. Called without any of the shim's locks held,
// after the context stopped being usable. At most four hooks, never removed.
using ContextDeathHook = void (*)(CUcontext context);
void AddContextDeathHook(ContextDeathHook hook);

// The devices as the program sees them (after CUDA_VISIBLE_DEVICES): 0 … DeviceCount() - 1.
int DeviceCount();
bool DeviceUuid(CUdevice device, uint8_t uuid[16]);
// The CUresult of asking for the attribute, and its value.
CUresult DeviceAttribute(CUdevice device, CUdevice_attribute attribute, int* value);

// What cuDriverGetVersion answers; never changes within a process.
int DriverVersion();

}  // namespace longwire::shim
