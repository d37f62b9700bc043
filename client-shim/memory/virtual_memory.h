// The driver's virtual memory management: cuMemAddressReserve, cuMemCreate, cuMemMap and others.
// Addresses come from the device's window, physical memory is leased chunks, the worker maps them.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace longwire::shim {

CUresult ReserveAddresses(uint64_t bytes, uint64_t alignment, uint64_t hint, uint64_t* address);
CUresult FreeAddresses(uint64_t address, uint64_t bytes);
CUresult CheckProperties(const CUmemAllocationProp& properties);
uint64_t PhysicalGranularity();
CUresult CreatePhysical(uint64_t bytes, const CUmemAllocationProp& properties, uint64_t* handle);
CUresult ReleasePhysical(uint64_t handle);
// To and from a descriptor by which programs of the tenant share the memory.
CUresult ExportPhysical(uint64_t handle, int* descriptor);
CUresult ImportPhysical(int descriptor, uint64_t* handle);
CUresult MapPhysical(uint64_t address, uint64_t bytes, uint64_t handle);
CUresult UnmapAddresses(uint64_t address, uint64_t bytes);
CUresult SetAccess(uint64_t address, uint64_t bytes, const CUmemAccessDesc* wanted, size_t count);
CUresult GetAccess(uint64_t address, const CUmemLocation& location, unsigned long long* flags);
// *access: whether the device can access the mapping at the address. False if the program has none
// there.
bool FindMappingAccess(uint64_t address, int device, bool* access);
CUresult PhysicalBytes(uint64_t handle, uint64_t* bytes);
CUresult PhysicalProperties(uint64_t handle, CUmemAllocationProp* properties);
CUresult RetainPhysicalAt(uint64_t address, uint64_t* handle);

}  // namespace longwire::shim
