// The seam between the keeper and a device: physical memory in chunks, and nothing else. Behind it
// stands a driver library (vmm_device.h) or, in tests, a fake. Codes are CUresults, 0 = success.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "server/keeper/host_pool.h"
#include "server/keeper/protocol.h"
#include "wire/socket.h"

namespace longwire::keeper {

// The CUresults that the keeper itself answers with.
inline constexpr int kSuccess = 0;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNotInitialized = 3;
inline constexpr int kNoDevice = 100;
inline constexpr int kNotSupported = 801;

struct DeviceIdentity {
  std::string name;
  int device_count = 0;      // devices that the driver shows
  uint64_t total = 0;        // bytes
  uint64_t granularity = 0;  // bytes; sizes of chunks are multiples of it
  DeviceFacts facts;
};

// Create, Export and Release are called on one thread, the others on others at the same time.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual const DeviceIdentity& identity() const = 0;
  virtual int Create(uint64_t bytes, uint64_t* handle) = 0;
  // A descriptor with which another process imports the chunk.
  virtual int Export(uint64_t handle, wire::Descriptor* descriptor) = 0;
  // The bytes are free when no other process has the chunk either.
  virtual void Release(uint64_t handle) = 0;
  // Fills the chunk with zeros; they are there when it returns.
  virtual int Zero(uint64_t handle, uint64_t bytes) = 0;
  // Pinned memory of the host, touched, zeros; it stays until the process ends. nullptr: none.
  virtual std::byte* Pin(uint64_t bytes) = 0;
  // Zeros in a part of that.
  virtual void ClearHost(const HostPart& part) { std::memset(part.data, 0, part.bytes); }
  // The whole chunk into these parts of it, one after the other, and back.
  virtual int CopyOut(uint64_t handle, uint64_t bytes, std::span<const HostPart> to) = 0;
  virtual int CopyIn(uint64_t handle, uint64_t bytes, std::span<const HostPart> from) = 0;
};

}  // namespace longwire::keeper
