#include "server/protocol/hello.h"

#include <sys/socket.h>

#include <array>

namespace longwire::message {

std::optional<wire::VersionRange> HelloIn(std::span<const std::byte> packet) {
  Hello hello;
  if (!wire::SpeaksRanges() || Unpack(packet, &hello) != wire::WireResult::kOk) {
    return std::nullopt;
  }
  return hello.versions();
}

std::string RefusalOf(std::string_view process, std::string_view peer,
                      wire::VersionRange versions) {
  return wire::RefusalOf({peer, peer, versions}, {process, process, wire::SpokenVersions()});
}

std::optional<wire::VersionRange> TakeHello(int socket) {
  // One more than a Hello has: a longer packet is seen to be one.
  std::array<std::byte, 3 * sizeof(uint32_t) + 1> first{};
  ssize_t bytes = recv(socket, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (bytes <= 0) return std::nullopt;
  auto versions = HelloIn(std::span(first).first(static_cast<size_t>(bytes)));
  if (versions) (void)!recv(socket, first.data(), first.size(), MSG_DONTWAIT);
  return versions;
}

uint64_t TokenOf(wire::VersionRange versions) {
  return uint64_t{versions.oldest} << 32 | versions.newest;
}

std::optional<wire::VersionRange> HelloIn(const uint64_t (&token)[2]) {
  if (!wire::SpeaksRanges() || token[0] != kHelloToken) return std::nullopt;
  return wire::VersionRange{static_cast<uint32_t>(token[1] >> 32), static_cast<uint32_t>(token[1])};
}

}  // namespace longwire::message
