#include "client-shim/context/properties.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client-shim/connect/several_servers.h"
#include "client-shim/context/current_context.h"
#include "client-shim/session/session.h"
#include "client-shim/support/never_destroyed.h"
#include "wire/limits.h"

namespace longwire::shim {
namespace {

std::vector<Device>& Devices() {
  static NeverDestroyed<std::vector<Device>> devices;
  return *devices;
}

// Attributes that are 0 whatever the device can: coherent access to the program's memory, sharing
// with other processes and devices of the host, and what no forwarded call can create.
bool Withheld(int attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
      return true;
    default:
      return false;
  }
}

// Attributes that are 1 whatever the device can: the client emulates them with ordinary device
// memory.
bool Offered(int attribute) {
  return attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY ||
         attribute == CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
}

// `knows_all`: the server's driver is not older than this library. One that is does not know some
// attributes, which are of features that it does not have.
Device MakeDevice(int ordinal, const wire::DeviceDescription& description, bool knows_all) {
  Device device;
  device.server_ordinal = ordinal;
  device.description = &description;
  for (const wire::DeviceAttribute& known : description.attributes) {
    if (known.attribute < 0 || known.attribute > static_cast<int>(wire::kMaxAttributes)) continue;
    while (device.attributes.size() <= static_cast<size_t>(known.attribute)) {
      int number = static_cast<int>(device.attributes.size());
      device.attributes.push_back({number, CUDA_ERROR_INVALID_VALUE, 0});
    }
    device.attributes[known.attribute] = known;
    if (!knows_all && known.code == CUDA_ERROR_INVALID_VALUE) {
      device.attributes[known.attribute] = {known.attribute, CUDA_SUCCESS, 0};
    }
    if (Withheld(known.attribute)) device.attributes[known.attribute].value = 0;
    // The client implements pools itself.
    if (known.attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) {
      device.attributes[known.attribute].value = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    }
    if (Offered(known.attribute)) device.attributes[known.attribute] = {known.attribute, 0, 1};
  }
  return device;
}

}  // namespace

void AddDevice(ClientSession& session, int ordinal) {
  const wire::OpenReply& reply = session.opened();
  const bool knows_all = reply.driver_version >= DriverVersion();
  Device device = MakeDevice(ordinal, reply.devices[ordinal], knows_all);
  device.session = &session;
  for (wire::DeviceAttribute& known : device.attributes) {
    if (known.attribute == CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID) {
      known.value = DomainAt(session.server(), known.value);
    }
    // Managed memory would have to be of all devices.
    const bool managed = known.attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    if (!session.name().empty() && managed) known.value = 0;
  }
  Devices().push_back(std::move(device));
}

const Device* FindDevice(CUdevice device) {
  std::vector<Device>& devices = Devices();
  if (device < 0 || static_cast<size_t>(device) >= devices.size()) return nullptr;
  return &devices[device];
}

int DeviceByServerOrdinal(const ClientSession& session, int ordinal) {
  std::vector<Device>& devices = Devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].session == &session && devices[i].server_ordinal == ordinal) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int DeviceOfAddress(uint64_t address) {
  std::vector<Device>& devices = Devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    const wire::Window& window = devices[i].description->window;
    if (address >= window.base && address - window.base < window.bytes) return static_cast<int>(i);
  }
  return -1;
}

std::string PciBusId(const Device& device) {
  char text[32];
  snprintf(text, sizeof(text), "%04x:%02x:%02x.0",
           AttributeOr(device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0),
           AttributeOr(device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0),
           AttributeOr(device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0));
  return text;
}

int DeviceCount() { return static_cast<int>(Devices().size()); }

bool DeviceUuid(CUdevice device, uint8_t uuid[16]) {
  const Device* found = FindDevice(device);
  if (found == nullptr) return false;
  memcpy(uuid, found->description->uuid.data(), 16);
  return true;
}

CUresult DeviceAttribute(CUdevice device, CUdevice_attribute attribute, int* value) {
  const Device* found = FindDevice(device);
  if (found == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < 1 || static_cast<size_t>(attribute) >= found->attributes.size()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const wire::DeviceAttribute& known = found->attributes[attribute];
  if (known.code == CUDA_SUCCESS) *value = known.value;
  return static_cast<CUresult>(known.code);
}

// The version of the interface that this library implements. Where a server's driver is older, what
// that lacks is refused; through this library a newer one offers nothing more.
int DriverVersion() { return CUDA_VERSION; }

}  // namespace longwire::shim
