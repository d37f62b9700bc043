// The warden's half of its handshakes with the daemon and the keepers (server/protocol/hello.h).
#include <cstdio>

#include "base/cuda_codes.h"
#include "server/protocol/hello.h"
#include "server/warden/warden.h"

namespace longwire::warden {

bool Warden::Greet(int connection, std::span<const std::byte> packet) {
  auto hello = message::HelloIn(packet);
  wire::VersionRange daemon = hello.value_or(wire::kWithoutRange);
  uint32_t version = wire::NewestCommon(daemon, wire::SpokenVersions());
  connections_.at(connection).version = version;
  if (hello) Reply(connection, message::Pack(message::Hello{}));
  if (version != 0) return !hello;
  std::string sentence = message::RefusalOf("longwire-warden", "longwired", daemon);
  std::fprintf(stderr, "longwire-warden: %s\n", sentence.c_str());
  Disconnect(connection);
  return false;
}

bool Warden::GreetKeeper(Keeper& keeper, std::span<const std::byte> packet) {
  auto hello = message::HelloIn(packet);
  wire::VersionRange versions = hello.value_or(wire::kWithoutRange);
  keeper.version = wire::NewestCommon(versions, wire::SpokenVersions());
  if (keeper.version != 0) return !hello;
  keeper.state.code = base::kSystemDriverMismatch;
  keeper.state.sentence = message::RefusalOf("longwire-warden", "longwire-keeper", versions);
  std::fprintf(stderr, "longwire-warden: %s\n", keeper.state.sentence.c_str());
  keeper.control.Reset();  // its packets are ignored
  warden::Kill(keeper.process);
  return false;
}

}  // namespace longwire::warden
