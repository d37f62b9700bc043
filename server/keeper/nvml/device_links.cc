#include "server/keeper/nvml/device_links.h"

#include "base/uuid_text.h"
#include "server/keeper/nvml/nvml_library.h"

namespace longwire::keeper {
namespace {

// The part of the library's interface that is used here. Declared here, so that building needs no
// header of the driver.
constexpr unsigned kMaxLinks = 64;      // devices so far have up to 18
constexpr unsigned kCapabilities = 6;   // of a link
constexpr unsigned kStateField = 165;   // whether a link is up, on Hopper and newer
constexpr unsigned kUnknownEnd = 0xff;  // what is at the other end

struct PciInfo {
  char legacy[16];
  unsigned numbers[5];
  char address[32];
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  unsigned type;
  int code;
  unsigned long long value;
};
static_assert(sizeof(PciInfo) == 68 && sizeof(FieldValue) == 40);

using Device = void*;

bool IsUp(const NvmlLibrary& library, Device device, unsigned number) {
  FieldValue field{};
  field.field = kStateField;
  field.scope = number;
  if (library.Call("nvmlDeviceGetFieldValues", device, 1, &field) == kNvmlSuccess &&
      field.code == kNvmlSuccess) {
    return static_cast<unsigned>(field.value) == 1;
  }
  unsigned up = 0;
  return library.Call("nvmlDeviceGetNvLinkState", device, number, &up) == kNvmlSuccess && up == 1;
}

DeviceLink Describe(const NvmlLibrary& library, Device device, unsigned number) {
  DeviceLink link;
  link.number = number;
  if (library.Call("nvmlDeviceGetNvLinkVersion", device, number, &link.version) != kNvmlSuccess) {
    link.version = 0;
  }
  for (unsigned capability = 0; capability < kCapabilities; ++capability) {
    unsigned has = 0;
    if (library.Call("nvmlDeviceGetNvLinkCapability", device, number, capability, &has) ==
            kNvmlSuccess &&
        has != 0) {
      link.capabilities |= 1u << capability;
    }
  }
  if (library.Call("nvmlDeviceGetNvLinkRemoteDeviceType", device, number, &link.remote_type) !=
      kNvmlSuccess) {
    link.remote_type = kUnknownEnd;
  }
  PciInfo remote{};
  if (library.Call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, number, &remote) ==
      kNvmlSuccess) {
    remote.address[sizeof(remote.address) - 1] = '\0';
    link.remote = remote.address;
  }
  return link;
}

}  // namespace

std::vector<DeviceLink> LinksOf(const std::string& driver, const std::string& uuid) {
  std::vector<DeviceLink> links;
  NvmlLibrary library(driver);
  if (library.Call("nvmlInit_v2") != kNvmlSuccess) return links;
  Device device = nullptr;
  std::string text = base::UuidText(uuid);
  if (library.Call("nvmlDeviceGetHandleByUUID", text.c_str(), &device) == kNvmlSuccess) {
    for (unsigned number = 0; number < kMaxLinks; ++number) {
      if (IsUp(library, device, number)) links.push_back(Describe(library, device, number));
    }
  }
  library.Call("nvmlShutdown");
  return links;
}

}  // namespace longwire::keeper
