// The keeper's interface to a device: physical memory in chunks. Implemented over a driver library
// (vmm_device.h) and, in tests, by a fake. Codes are CUresults, 0 = success.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/cuda_codes.h"
#include "server/keeper/host_pool.h"
#include "server/protocol/keeper.h"
#include "wire/socket.h"

namespace longwire::keeper {

// The CUresults that the keeper answers with.
using base::kInvalidValue;
using base::kNoDevice;
using base::kNotInitialized;
using base::kNotSupported;
using base::kOutOfMemory;
using base::kSuccess;

struct DeviceIdentity {
  std::string name;
  int device_count = 0;      // devices that the driver shows
  uint64_t total = 0;        // bytes
  uint64_t granularity = 0;  // bytes; sizes of chunks are multiples of it
  DeviceFacts facts;
};

// Create, Export and Release are called by one thread; the others by other threads at the same
// time.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual const DeviceIdentity& identity() const = 0;
  // Bytes of the device that are in use, by anybody; 0: not known. Called as Create is.
  virtual uint64_t Used() { return 0; }
  virtual int Create(uint64_t bytes, uint64_t* handle) = 0;
  // A descriptor with which another process imports the chunk.
  virtual int Export(uint64_t handle, wire::Descriptor* descriptor) = 0;
  // The driver frees the memory when no other process has the chunk.
  virtual void Release(uint64_t handle) = 0;
  // Fills the chunk with zeros, and waits until that is done.
  virtual int Zero(uint64_t handle, uint64_t bytes) = 0;
  // Allocates pinned host memory, zeroed, until the process ends. nullptr: none.
  virtual std::byte* Pin(uint64_t bytes) = 0;
  // Zeroes a part of it.
  virtual void ClearHost(const HostPart& part) { std::memset(part.data, 0, part.bytes); }
  // Copies the whole chunk to these parts, in order, and back.
  virtual int CopyOut(uint64_t handle, uint64_t bytes, std::span<const HostPart> to) = 0;
  virtual int CopyIn(uint64_t handle, uint64_t bytes, std::span<const HostPart> from) = 0;
  // Copies a chunk of the same size, of any device that this one reaches, to the whole chunk.
  virtual int Fill(uint64_t handle, uint64_t bytes, const wire::Descriptor& from) = 0;
};

}  // namespace longwire::keeper
