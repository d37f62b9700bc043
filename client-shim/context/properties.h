// The devices as the program sees them. Their properties come with the opening of the session, so
// no question about them goes to the server.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "wire/open.h"

namespace longwire::shim {

class ClientSession;

struct Device {
  ClientSession* session = nullptr;  // of its server
  int server_ordinal = 0;            // its number in the worker
  const wire::DeviceDescription* description = nullptr;
  std::vector<wire::DeviceAttribute> attributes;  // by number; code CUDA_ERROR_INVALID_VALUE: none
};

// Makes the session's device the program's next one.
void AddDevice(ClientSession& session, int ordinal);

// nullptr if there is no such device.
const Device* FindDevice(CUdevice device);

// The program's number of the device that is `ordinal` for the session's worker; -1 if it is not
// visible.
int DeviceByServerOrdinal(const ClientSession& session, int ordinal);

// The device whose window holds the address, -1 if none.
int DeviceOfAddress(uint64_t address);

// "domain:bus:device.function" as the driver writes it.
std::string PciBusId(const Device& device);

// An attribute's value, or `otherwise` if the server did not report one. A launch asks for seven.
inline int AttributeOr(const Device& device, CUdevice_attribute attribute, int otherwise) {
  if (static_cast<size_t>(attribute) >= device.attributes.size()) return otherwise;
  const wire::DeviceAttribute& known = device.attributes[attribute];
  return known.code == CUDA_SUCCESS ? known.value : otherwise;
}

}  // namespace longwire::shim
