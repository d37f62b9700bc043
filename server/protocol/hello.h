// Version negotiation between daemon, warden, keepers and workers (wire/versions.h). The side that
// connects or starts a process sends Hello as the first packet of a socket; the other side answers
// with its own. Programs older than version 14 do not know Hello:
//
// - An old warden ends the connection: the daemon connects again without Hello.
// - An old keeper ignores the warden's Hello, which is in the socket before the keeper starts. A
//   newer one answers it before it sends anything else.
// - An old keeper ends the connection of a worker that sends an unknown packet. So the worker's
//   Hello is a request for memory under a token that does not exist: an old keeper refuses it, a
//   newer one answers with its Hello.
//
// If the first packet is no Hello, the other side has version 13. These packets are the same in all
// versions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "server/protocol/message.h"
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

// The range in a packet; nullopt if it is no Hello, or if this process imitates a version without
// Hello.
std::optional<wire::VersionRange> HelloIn(std::span<const std::byte> packet);

// The sentence for people when a process and its peer, whose range is `versions`, have no version
// in common.
std::string RefusalOf(std::string_view process, std::string_view peer, wire::VersionRange versions);

// Takes the first packet of a socket if it has arrived and is a Hello.
std::optional<wire::VersionRange> TakeHello(int socket);

// A worker's Hello, in the token of a keeper::Borrow.
inline constexpr uint64_t kHelloToken = 0x6f6c6c656820574c;
uint64_t TokenOf(wire::VersionRange versions);
std::optional<wire::VersionRange> HelloIn(const uint64_t (&token)[2]);

}  // namespace longwire::message
