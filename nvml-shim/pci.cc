// Where the devices sit on the GPU host, as our libcuda.so.1 says it too.
#include "nvml-shim/pci.h"

#include <cuda.h>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "nvml-shim/text.h"

namespace longwire::nvml {
namespace {

// A hexadecimal number at the text's beginning, which is taken off.
bool Take(std::string_view* text, unsigned* number) {
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number, 16);
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return error == std::errc();
}

}  // namespace

Place PlaceOf(const Seen& seen) {
  auto value = [&](CUdevice_attribute attribute) {
    return static_cast<unsigned>(seen.Attribute(attribute, 0));
  };
  return {value(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID), value(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
          value(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)};
}

bool ParsePlace(std::string_view text, Place* place) {
  unsigned numbers[3] = {}, count = 0;
  do {
    if (count == 3 || !Take(&text, &numbers[count])) return false;
    ++count;
  } while (text.starts_with(':') && (text.remove_prefix(1), true));
  constexpr unsigned kBuses = 256, kDevices = 32;
  if (count < 2 || numbers[count - 2] >= kBuses || numbers[count - 1] >= kDevices) return false;
  *place = {count == 3 ? numbers[0] : 0, numbers[count - 2], numbers[count - 1]};
  return text.empty() || text == ".0" || text == ".00";
}

nvmlPciInfo_t PciInfoOf(const Place& place) {
  nvmlPciInfo_t pci = {};
  pci.domain = place.domain;
  pci.bus = place.bus;
  pci.device = place.device;
  std::snprintf(pci.busIdLegacy, sizeof(pci.busIdLegacy), "%04X:%02X:%02X.0", place.domain & 0xffff,
                place.bus & 0xff, place.device & 0xff);
  std::snprintf(pci.busId, sizeof(pci.busId), "%08X:%02X:%02X.0", place.domain, place.bus & 0xff,
                place.device & 0xff);
  return pci;
}

namespace {

// The first `bytes` of the structure: older callers have less of it.
nvmlReturn_t Answer(nvmlDevice_t device, void* to, size_t bytes) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlPciInfo_t pci = PciInfoOf(PlaceOf(seen));
  pci.pciDeviceId = static_cast<unsigned>(seen.Attribute(CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, 0));
  pci.pciSubSystemId =
      static_cast<unsigned>(seen.Attribute(CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, 0));
  std::memcpy(to, &pci, bytes);
  return NVML_SUCCESS;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return Answer(device, pci, sizeof(nvmlPciInfo_t));
}

// Between subsystem and the end the second version has four reserved numbers, no longer text.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, void* pci) {
  return Answer(device, pci, offsetof(nvmlPciInfo_t, busId));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, void* pci) {
  return Answer(device, pci, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* pci) {
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (pci->version != NvmlVersion<nvmlPciInfoExt_t>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  nvmlPciInfo_t known;
  nvmlReturn_t result = Answer(device, &known, sizeof(known));
  if (result != NVML_SUCCESS) return result;
  // Display controller, 3D: what a GPU that only computes calls itself.
  constexpr unsigned kDisplay = 3, kThreeDimensional = 2;
  *pci = {pci->version, known.domain,      known.bus,
          known.device, known.pciDeviceId, known.pciSubSystemId,
          kDisplay,     kThreeDimensional, {}};
  std::memcpy(pci->busId, known.busId, sizeof(pci->busId));
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id,
                                                          nvmlDevice_t* device) {
  View view;
  nvmlReturn_t result = Look(&view);
  if (result != NVML_SUCCESS) return result;
  Place wanted;
  if (bus_id == nullptr || device == nullptr || !ParsePlace(bus_id, &wanted)) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  for (size_t i = 0; i < view->devices.size(); ++i) {
    if (PlaceOf({view, &view->devices[i], 0}) != wanted) continue;
    *device = HandleOf(i);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

}  // namespace longwire::nvml
