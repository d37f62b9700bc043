// Connections between devices: peer access from the server's driver, links from its NVML.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nvml-shim/pci.h"
#include "nvml-shim/state.h"

namespace longwire::nvml {
namespace {

// NOT_SUPPORTED where there is no link at all, or nobody on the server knows. *link is null for one
// that is down.
nvmlReturn_t FindLink(nvmlDevice_t device, unsigned number, Seen* seen,
                      const wire::ViewedLink** link) {
  nvmlReturn_t result = Find(device, seen);
  if (result != NVML_SUCCESS) return result;
  if (number >= wire::kMaxViewedLinks) return NVML_ERROR_INVALID_ARGUMENT;
  const std::vector<wire::ViewedLink>& links = seen->device->links;
  if (links.empty()) return NVML_ERROR_NOT_SUPPORTED;
  auto found = std::ranges::find(links, number, &wire::ViewedLink::number);
  *link = found == links.end() ? nullptr : &*found;
  return NVML_SUCCESS;
}

// Of a link that is up.
template <class Value>
nvmlReturn_t Answer(nvmlDevice_t device, unsigned number, unsigned* to, Value value) {
  Seen seen;
  const wire::ViewedLink* link = nullptr;
  nvmlReturn_t result = FindLink(device, number, &seen, &link);
  if (result != NVML_SUCCESS) return result;
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (link == nullptr) return NVML_ERROR_NOT_SUPPORTED;
  *to = value(*link);
  return NVML_SUCCESS;
}

bool CarriesPeers(const wire::ViewedLink& link) {
  return (link.capabilities & 1u << NVML_NVLINK_CAP_P2P_SUPPORTED) != 0;
}

// A link from one to the other, or both at switches.
bool AreLinked(const Seen& device, const Seen& other) {
  auto to_switch = [](const wire::ViewedLink& link) {
    return CarriesPeers(link) && link.remote_type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
  };
  auto to_other = [&](const wire::ViewedLink& link) {
    Place place;
    return CarriesPeers(link) && ParsePlace(link.remote, &place) && place == PlaceOf(other);
  };
  return std::ranges::any_of(device.device->links, to_other) ||
         (std::ranges::any_of(device.device->links, to_switch) &&
          std::ranges::any_of(other.device->links, to_switch));
}

unsigned StatusOf(const Seen& device, const Seen& other, unsigned capability) {
  auto has = [&](const std::vector<uint32_t>& places) {
    return std::ranges::count(places, other.index) != 0;
  };
  bool good = has(device.device->peers);
  switch (capability) {
    case NVML_P2P_CAPS_INDEX_READ:
    case NVML_P2P_CAPS_INDEX_WRITE:
      break;
    case NVML_P2P_CAPS_INDEX_NVLINK:
      good = good && AreLinked(device, other);
      break;
    case NVML_P2P_CAPS_INDEX_ATOMICS:
      good = has(device.device->atomic_peers);
      break;
    default:
      return NVML_P2P_STATUS_UNKNOWN;
  }
  return good ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
}

// The first `bytes` of the structure: the older function's callers have less of it.
nvmlReturn_t AnswerRemote(nvmlDevice_t device, unsigned number, void* to, size_t bytes) {
  Seen seen;
  const wire::ViewedLink* link = nullptr;
  nvmlReturn_t result = FindLink(device, number, &seen, &link);
  if (result != NVML_SUCCESS) return result;
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (link == nullptr || link->remote.empty()) return NVML_ERROR_NOT_SUPPORTED;
  Place place;
  nvmlPciInfo_t pci = {};
  if (ParsePlace(link->remote, &place)) {
    pci = PciInfoOf(place);
  } else {  // a guest that does not see its switches has other words for them
    link->remote.copy(pci.busIdLegacy, sizeof(pci.busIdLegacy) - 1);
    link->remote.copy(pci.busId, sizeof(pci.busId) - 1);
  }
  std::memcpy(to, &pci, bytes);
  return NVML_SUCCESS;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other,
                                                unsigned capability, unsigned* status) {
  Seen first, second;
  nvmlReturn_t result = Find(device, &first);
  if (result == NVML_SUCCESS) result = Find(other, &second);
  if (result != NVML_SUCCESS) return result;
  if (status == nullptr || capability > NVML_P2P_CAPS_INDEX_UNKNOWN) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  *status = device == other ? NVML_P2P_STATUS_OK : StatusOf(first, second, capability);
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned number,
                                                  unsigned* is_up) {
  Seen seen;
  const wire::ViewedLink* link = nullptr;
  nvmlReturn_t result = FindLink(device, number, &seen, &link);
  if (result != NVML_SUCCESS) return result;
  if (is_up == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *is_up = link != nullptr;
  return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned number,
                                                    unsigned* version) {
  return Answer(device, number, version, [](const auto& link) { return link.version; });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned number,
                                                       unsigned capability, unsigned* has) {
  if (capability >= NVML_NVLINK_CAP_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return Answer(device, number, has,
                [&](const auto& link) { return link.capabilities >> capability & 1; });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned number,
                                                             unsigned* type) {
  return Answer(device, number, type, [](const auto& link) { return link.remote_type; });
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned number,
                                                             nvmlPciInfo_t* pci) {
  return AnswerRemote(device, number, pci, sizeof(nvmlPciInfo_t));
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned number,
                                                          void* pci) {
  return AnswerRemote(device, number, pci, offsetof(nvmlPciInfo_t, busId));
}

// Each field says for itself that it is not known: all but those of links.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                                  nvmlFieldValue_t* values) {
  Seen seen;
  nvmlReturn_t result = Find(device, &seen);
  if (result != NVML_SUCCESS) return result;
  if (count <= 0 || values == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& field = values[i];
    unsigned answer = 0;
    if (field.fieldId == NVML_FI_DEV_NVLINK_GET_STATE) {
      field.nvmlReturn = nvmlDeviceGetNvLinkState(device, field.scopeId, &answer);
    } else if (field.fieldId == NVML_FI_DEV_NVLINK_GET_VERSION) {
      field.nvmlReturn = nvmlDeviceGetNvLinkVersion(device, field.scopeId, &answer);
    } else {
      field.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
      continue;
    }
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field.value = answer;
  }
  return NVML_SUCCESS;
}

}  // namespace longwire::nvml
