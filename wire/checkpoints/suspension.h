// A program's request about its own session: suspend it into a file of the server's, or let it go
// on from there (cuCheckpointProcess… of the driver's API). The request goes to the same local
// socket of the link as an opening (wire/open.h); one request per connection.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "wire/buffer.h"
#include "wire/versions.h"

namespace longwire::wire {

enum class SuspensionWish : uint32_t {
  kState = 0,  // only whether it is suspended
  kSuspend = 1,
  kRestore = 2,
};

// Versions, and what Decode reads of other versions, are as in OpenRequest and OpenReply.
struct SuspensionRequest {
  VersionRange versions = SpokenVersions();
  SuspensionWish wish = SuspensionWish::kState;
  uint64_t session = 0;              // its number, as its opening said
  uint32_t pid = 0;                  // of the program, on its own host
  std::string host;                  // its host's name
  std::array<uint8_t, 16> device{};  // the UUID of that to go on on; zeros: where it was

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

// True if the first message at a local socket is a SuspensionRequest.
bool IsSuspensionRequest(std::span<const std::byte> message);

struct SuspensionReply {
  uint32_t protocol = SpokenVersions().newest;
  VersionRange versions = SpokenVersions();
  bool done = false;       // what was wished, or was so already
  bool suspended = false;  // now; not to be relied on if the server is not known to have answered
  bool answered = false;   // the server's answer, and not only the link's
  std::string sentence;    // for people

  void Encode(Writer& writer) const;
  WireResult Decode(Reader& reader);
};

}  // namespace longwire::wire
