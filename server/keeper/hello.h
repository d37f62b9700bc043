// How daemon, warden, keepers and workers learn which versions the other side speaks
// (wire/versions.h). Who connects or starts a process says Hello first, as the first packet of a
// socket; the other side answers with its own. Sides of before know no Hello:
//
// - A warden of before ends the connection: the daemon connects once more and says none.
// - A keeper of before does not heed the warden's. It is in the socket before the keeper begins;
//   one that knows it answers before it says anything else.
// - A keeper of before ends the connection with a worker that says what it does not know. So the
//   worker asks for memory under a token that nobody has: a keeper of before refuses it, another
//   one answers with its Hello.
//
// A side that hears no Hello as the first packet takes the other for one of version 13. These
// packets are the same in all versions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "server/keeper/message.h"
#include "wire/socket.h"
#include "wire/versions.h"

namespace longwire::message {

struct Hello {
  static constexpr uint32_t kKind = 301;
  uint32_t oldest = wire::SpokenVersions().oldest;
  uint32_t newest = wire::SpokenVersions().newest;
  auto Fields() { return std::tie(oldest, newest); }
  wire::VersionRange versions() const { return {oldest, newest}; }
};

// The range in a packet; nullopt if it is no Hello, or this process plays a version without.
std::optional<wire::VersionRange> HelloIn(std::span<const std::byte> packet);

// Takes the first packet of a socket if it is a Hello and there already.
std::optional<wire::VersionRange> TakeHello(int socket);

// A worker's Hello, in the token of a keeper::Borrow.
inline constexpr uint64_t kHelloToken = 0x6f6c6c656820574c;
uint64_t TokenOf(wire::VersionRange versions);
std::optional<wire::VersionRange> HelloIn(const uint64_t (&token)[2]);

}  // namespace longwire::message
