#include "client-shim/memory/reach.h"

#include "client-shim/context/properties.h"
#include "client-shim/memory/opened_memory.h"
#include "client-shim/memory/peers.h"
#include "client-shim/memory/pointers.h"
#include "client-shim/memory/virtual_memory.h"
#include "client-shim/mirror/shared_blocks.h"

namespace longwire::shim {

bool Reaches(int device, uint64_t address) {
  bool reaches = false;
  if (FindMappingAccess(address, device, &reaches)) return reaches;
  if (FindSharedAccess(address, device, &reaches)) return reaches;
  if (FindOpenedAccess(address, device, &reaches)) return reaches;
  int owner = DeviceOfAddress(address);
  DeviceRange range;
  if (owner < 0 && FindDeviceRange(address, &range)) owner = range.context->device;
  if (owner < 0 || owner == device) return true;
  return IsPeer(device, owner);
}

bool CopyReaches(int device, uint64_t address) {
  bool reaches = true;
  FindMappingAccess(address, device, &reaches);
  return reaches;
}

}  // namespace longwire::shim
