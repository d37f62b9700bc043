// Pinned memory that device code reaches. A range is exposed once its device pointer was asked for,
// a launch's arguments or a structure copied to the device point into it, or the device is told to
// write it; from then on it is mirrored (mirrors.h) until it is freed, and takes as much device
// memory.
//
// Memory that we allocated lies where the device can have it too, at the same address. Memory that
// the program registered has another address there, as on devices that cannot use host pointers.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::shim {

// Exposes the pinned range that holds the address; gives the device's address of the same byte.
// CUDA_ERROR_INVALID_VALUE if it is not pinned, CUDA_ERROR_OUT_OF_MEMORY.
CUresult ExposeHost(uint64_t address, uint64_t* device_address);

// The same for the program that asks for the device's address. CUDA_ERROR_NOT_SUPPORTED, and a
// sentence, for registered memory that other processes may write: kernels would wait there for what
// never comes.
CUresult ExposeToProgram(uint64_t address, uint64_t* device_address);

// If the address is in pinned memory, exposes it and replaces it with the device's.
CUresult ToDeviceAddress(uint64_t* address);

// Exposes what a kernel's arguments point at directly.
CUresult ExposeArguments(std::span<const std::byte> arguments);

// The same for what is copied to the device, if it is no more than a structure may be: kernels find
// pointers there. NCCL's kernels look at a flag in pinned memory that way, and only when they have
// waited long. What cannot be exposed stays hidden.
void ExposePointees(std::span<const std::byte> bytes);

// Before a registered range goes; work that uses it must be over.
void HideRegistered(uint64_t address);

// When a context ended.
void ForgetExposed(uint32_t context_number);

}  // namespace longwire::shim
