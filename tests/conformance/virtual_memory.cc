// The program's own management of addresses and physical memory.
#include "check.h"

namespace conformance {

void VirtualMemory() {
  InContext in;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t granularity = 0;
  CODE(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  VALUE(granularity);
  CUmemGenericAllocationHandle handle = 0, again = 0;
  CODE(cuMemCreate(&handle, 2 * granularity, &properties, 0));
  CODE(cuMemCreate(&again, granularity / 2, &properties, 0));
  CODE(cuMemCreate(&again, 0, &properties, 0));
  CODE(cuMemCreate(&again, granularity, &properties, 7));
  CUdeviceptr address = 0, other = 0;
  CODE(cuMemAddressReserve(&address, 4 * granularity, 0, 0, 0));
  VALUE(address % granularity);
  CODE(cuMemAddressReserve(&other, granularity / 2, 0, 0, 0));
  CODE(cuMemAddressReserve(&other, 0, 0, 0, 0));
  CODE(cuMemMap(address, 2 * granularity, 0, handle, 0));
  CODE(cuMemMap(address, 2 * granularity, 0, handle, 0));
  CODE(cuMemMap(address + 1, 2 * granularity, 0, handle, 0));
  CODE(cuMemMap(address + 2 * granularity, 4 * granularity, 0, handle, 0));
  CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CODE(cuMemSetAccess(address, 2 * granularity, &access, 1));
  CODE(cuMemSetAccess(address, 3 * granularity, &access, 1));
  unsigned long long flags = 0;
  CODE(cuMemGetAccess(&flags, &properties.location, address));
  VALUE(flags);
  CODE(cuMemsetD32(address, 0x12345678, granularity / 2));
  VALUE(DigestOf(address, granularity));
  CUmemAllocationProp told = {};
  CODE(cuMemGetAllocationPropertiesFromHandle(&told, handle));
  VALUE(told.type);
  CODE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)));
  VALUE(again == handle);
  CODE(cuMemRelease(again));
  CODE(cuMemAddressFree(address, 4 * granularity));
  CODE(cuMemUnmap(address, granularity));
  CODE(cuMemUnmap(address, 2 * granularity));
  CODE(cuMemUnmap(address, 2 * granularity));
  CODE(cuMemMap(address + granularity, 2 * granularity, 0, handle, 0));
  CODE(cuMemSetAccess(address + granularity, 2 * granularity, &access, 1));
  VALUE(DigestOf(address + granularity, granularity));
  CODE(cuMemRelease(handle));
  CODE(cuMemUnmap(address + granularity, 2 * granularity));
  CODE(cuMemRelease(handle));
  CODE(cuMemAddressFree(address, granularity));
  CODE(cuMemAddressFree(address, 4 * granularity));
  properties.location.id = 99;
  CODE(cuMemCreate(&handle, granularity, &properties, 0));
  // Addresses that are to be aligned to more than a page, behind some that are not.
  CODE(cuMemAddressReserve(&address, granularity, 0, 0, 0));
  for (size_t alignment : {2 * granularity, 64 * granularity}) {
    CODE(cuMemAddressReserve(&other, 3 * granularity, alignment, 0, 0));
    VALUE(other % alignment);
    CODE(cuMemAddressFree(other, 3 * granularity));
  }
  CODE(cuMemAddressFree(address, granularity));
}

}  // namespace conformance
