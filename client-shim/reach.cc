#include "client-shim/reach.h"

#include "client-shim/opened_memory.h"
#include "client-shim/peers.h"
#include "client-shim/pointers.h"
#include "client-shim/properties.h"
#include "client-shim/shared_blocks.h"
#include "client-shim/virtual_memory.h"

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
