// Chunks that are copied from one device to another, for a session that moves: the keeper of the
// old worker shows a chunk, and that of the new one copies it into a chunk of its own, without the
// host. Part of server/protocol/keeper.h.
#pragma once

#include <cstdint>
#include <tuple>

namespace longwire::keeper {

inline constexpr uint32_t kFillsSince = 14;  // version of the protocol

// Worker to keeper: a descriptor of a chunk that it has, though it has imported it. Answered by a
// Grant of that chunk, or Refuse.
struct Show {
  static constexpr uint32_t kKind = 125;
  uint64_t request = 0;
  uint64_t chunk = 0;  // id
  auto Fields() { return std::tie(request, chunk); }
};

// Worker to keeper, with the descriptor of a chunk of the same size, of any device that this one
// reaches. The worker uses neither until it is answered.
struct Fill {
  static constexpr uint32_t kKind = 126;
  uint64_t request = 0;
  uint64_t chunk = 0;  // id; what it holds is replaced
  auto Fields() { return std::tie(request, chunk); }
};

struct Filled {
  static constexpr uint32_t kKind = 127;
  uint64_t request = 0;
  int32_t code = 0;  // a CUresult; not 0: it may hold anything
  auto Fields() { return std::tie(request, code); }
};

}  // namespace longwire::keeper
