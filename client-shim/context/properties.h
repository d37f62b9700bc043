// The devices as the program sees them, from what the session's opening told: everything about them
// is answered here.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "wire/open.h"

namespace longwire::shim {

struct Device {
  int server_ordinal = 0;  // what the worker calls it
  const wire::DeviceDescription* description = nullptr;
  std::vector<wire::DeviceAttribute> attributes;  // by number; code CUDA_ERROR_INVALID_VALUE: none
};

// Makes the program's devices of these of the session's.
void InitializeDevices(const wire::OpenReply& reply, const std::vector<int>& visible);

// nullptr if there is no such device.
const Device* FindDevice(CUdevice device);

// The program's number of the device that the worker calls `ordinal`, -1 if it does not see it.
int DeviceByServerOrdinal(int ordinal);

// The device whose window holds the address, -1 if none.
int DeviceOfAddress(uint64_t address);

// "domain:bus:device.function" as the driver writes it.
std::string PciBusId(const Device& device);

// An attribute's value, or `otherwise` when the server does not know it.
int AttributeOr(const Device& device, CUdevice_attribute attribute, int otherwise);

}  // namespace longwire::shim
