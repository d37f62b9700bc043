// The calling thread's context, and what the private tables need to know about contexts and
// devices. Any thread may call these functions; they do not wait. Before a successful cuInit there
// are no devices and no contexts.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace longwire::shim {

// The context on top of the calling thread's stack, nullptr when the stack is empty.
CUcontext CurrentContext();

// The handle of a device's primary context, without retaining or activating it: the same for the
// life of the process. nullptr if there is no such device.
CUcontext PrimaryContextHandle(CUdevice device);

// True if `context` is the handle of a context that was not destroyed.
bool IsContext(CUcontext context);

// A number that no other context of this process has or had. False for an invalid handle, *id is
// unchanged then. A primary context that was reset gets a new number.
bool ContextUniqueId(CUcontext context, uint64_t* id);

// The device of a context; false for an invalid handle.
bool ContextDevice(CUcontext context, CUdevice* device);

// A number that no other stream of this process has or had. `stream` may be one of the default
// handles (nullptr, 1, 2); 2 is the calling thread's own. `context` nullptr is the current one.
bool StreamUniqueId(CUcontext context, CUstream stream, uint64_t* id);

// The devices as the program sees them (after CUDA_VISIBLE_DEVICES): 0 … DeviceCount() - 1.
int DeviceCount();
bool DeviceUuid(CUdevice device, uint8_t uuid[16]);
// As cuDeviceGetAttribute.
CUresult DeviceAttribute(CUdevice device, CUdevice_attribute attribute, int* value);

// As cuDriverGetVersion; never changes within a process.
int DriverVersion();

}  // namespace longwire::shim
