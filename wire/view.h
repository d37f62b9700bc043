// A view: information for a program that opens no session. It lists the devices that the program
// has or would get, their free memory and the processes that use them. The request goes to the same
// local socket as an opening (wire/open.h), and the daemon replies; one request per connection.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wire/buffer.h"
#include "wire/limits.h"
#include "wire/versions.h"

namespace longwire::wire {

inline constexpr size_t kMaxViewedProcesses = 512;  // of one device; an answer stays one packet
inline constexpr size_t kMaxViewedLinks = 64;       // of one device

// Versions, and what Decode reads of other versions, are as in OpenRequest and OpenReply.
struct ViewRequest {
  VersionRange versions = SpokenVersions();
  uint32_t pid = 0;     // of the program, on its own host
  std::string host;     // its host's name
  std::string devices;  // its LONGWIRE_DEVICES, empty: as usual

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

// True if the first message at a local socket is a ViewRequest, and not an OpenRequest.
bool IsViewRequest(std::span<const std::byte> message);

struct ViewedAttribute {
  int32_t attribute = 0;  // CUdevice_attribute
  int32_t value = 0;
};

// A session of the caller's tenant, with a program on the caller's host.
struct ViewedProcess {
  uint32_t pid = 0;
  uint64_t memory = 0;  // bytes of the device's memory that its session has
  std::string program;
};

// An NVLink that is up, in NVML's numbers.
struct ViewedLink {
  uint32_t number = 0;  // on its device
  uint32_t version = 0;
  uint32_t capabilities = 0;  // bit n: capability n
  uint32_t remote_type = 0;
  std::string remote;  // PCI address of the other end
};

struct ViewedDevice {
  std::string name;
  std::array<uint8_t, 16> uuid{};
  std::vector<ViewedAttribute> attributes;  // some of those that the driver knows
  uint64_t memory_total = 0;                // bytes, at most what the tenant may have
  uint64_t memory_reserved = 0;             // of that: bytes that cannot be allocated
  uint64_t memory_free = 0;                 // bytes that the tenant could still get
  uint32_t busy_percent = 0;                // of the last minute
  std::vector<uint32_t> peers;         // indexes in ViewReply::devices: it can access their memory
  std::vector<uint32_t> atomic_peers;  // those of `peers` with native atomics
  std::vector<ViewedLink> links;       // by number; empty if not known
  std::vector<ViewedProcess> processes;
};

struct ViewReply {
  uint32_t protocol = SpokenVersions().newest;
  VersionRange versions = SpokenVersions();
  int32_t code = 0;            // 0, or a CUresult
  std::string sentence;        // for people, when code is not 0
  std::string driver_release;  // "580.95.05"; empty: not known
  std::vector<ViewedDevice> devices;

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

}  // namespace longwire::wire
