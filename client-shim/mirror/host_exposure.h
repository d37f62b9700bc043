// Pinned memory that device code accesses. A range is exposed when the program asks for its device
// pointer, when a launch's arguments or a structure copied to the device point into it, or when the
// device is to write it. From then on it is mirrored (mirrors.h) until it is freed, and takes the
// same amount of device memory.
//
// Memory that the shim allocated has the same address on the device. Memory that the program
// registered has another address there, as on devices that cannot use host pointers.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::shim {

// Exposes the pinned range that contains the address and finds the device's address of the same
// byte. CUDA_ERROR_INVALID_VALUE if the address is not pinned, CUDA_ERROR_OUT_OF_MEMORY.
CUresult ExposeHost(uint64_t address, uint64_t* device_address);

// The same for calls by which the program asks for the device's address. With
// LONGWIRE_DISABLE=shared-registered CUDA_ERROR_NOT_SUPPORTED, with a message, for registered
// memory that other processes may write.
CUresult ExposeToProgram(uint64_t address, uint64_t* device_address);

// Exposes the address if it is pinned, and replaces it by the device's.
CUresult ToDeviceAddress(uint64_t* address);

// Exposes the pinned memory at which a kernel's arguments point.
CUresult ExposeArguments(std::span<const std::byte> arguments);

// The same for bytes that are copied to the device, if they are few enough to be a structure with
// pointers. NCCL's kernels read a flag in pinned memory by such a pointer when they have waited
// long. Ignores memory that cannot be exposed.
void ExposePointees(std::span<const std::byte> bytes);

// Before a registered range is unregistered; work that uses it must have finished.
void HideRegistered(uint64_t address);

// When a context ended.
void ForgetExposed(uint32_t context_number);

}  // namespace longwire::shim
