// PCI addresses on the GPU host.
#pragma once

#include <string_view>

#include "nvml-shim/state.h"

namespace longwire::nvml {

struct Place {
  unsigned domain = 0, bus = 0, device = 0;
  bool operator==(const Place&) const = default;
};

Place PlaceOf(const Seen& seen);
// "domain:bus:device.function"; the domain and the function, which is 0, may be left out.
bool ParsePlace(std::string_view text, Place* place);
// The numbers and both texts; the rest is zero.
nvmlPciInfo_t PciInfoOf(const Place& place);

}  // namespace longwire::nvml
