// Which sessions wait for each other's work: those that share memory. The scheduler moves them
// together (docs/scheduling.md). Over a worker's control socket:
//
//   TellLinks -> Linked × n   from the daemon, when it begins to serve the worker: a Linked for
//   each
//                             token that the session shares or borrows memory by, now and later.
//                             Workers of earlier releases ignore it.
//
// Packets are made by message::Pack and read by message::Unpack.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

namespace longwire::links {

using Token = std::array<uint64_t, 2>;  // random, from a keeper (server/protocol/keeper.h)

struct TellLinks {
  static constexpr uint32_t kKind = 141;
  auto Fields() { return std::tie(); }
};

struct Linked {
  static constexpr uint32_t kKind = 142;
  Token token{};
  auto Fields() { return std::tie(token[0], token[1]); }
};

}  // namespace longwire::links
