// How the workers of a keeper that has ended come to its successor. The warden has the keeper's
// ends of their sockets, too, and passes them on (Attach, with Again); what the old keeper had lent
// is in its table of loans (server/ledger/loan_table.h). The worker sees no end of file:
//   Reattach -> HeldShare × n, Held × n (the last one has more = false), then once more what the
//               worker had asked and has no answer to
// What the worker sent before its Held was for the old keeper and is ignored. From version 14 on;
// the socket of an older worker is shut down instead.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "server/protocol/message.h"

namespace longwire::keeper {

inline constexpr uint32_t kReattachSince = 14;  // version of the protocol

inline constexpr size_t kMaxChunksPerHeld = 8192;
inline constexpr size_t kMaxHeldFiles = 256;  // descriptors of shared chunks that a worker keeps

// Keeper to worker.
struct Reattach {
  static constexpr uint32_t kKind = 122;
  uint64_t keeper = 0;  // which successor asks, repeated in Held
  auto Fields() { return std::tie(keeper); }
};

struct Held {
  static constexpr uint32_t kKind = 123;
  uint64_t keeper = 0;
  bool more = false;
  uint64_t charged = 0;          // bytes beside chunks
  std::vector<uint64_t> chunks;  // ids, one as often as it was lent
  auto Fields() { return std::tie(keeper, more, charged, chunks); }
};

// A token that the worker shares or has borrowed by, with a descriptor of each of its chunks, as
// Shared and Grant carried them: before the last Held.
struct HeldShare {
  static constexpr uint32_t kKind = 124;
  uint64_t keeper = 0;
  uint64_t token[2] = {};
  std::vector<uint64_t> chunks;  // ids
  auto Fields() { return std::tie(keeper, token[0], token[1], chunks); }
};

// Warden to keeper, a part of Attach: the worker was its predecessor's.
struct Again {
  uint32_t tenant = 0;               // in the ledger
  std::optional<uint64_t> promised;  // bytes that its predecessor kept for it
  auto Fields() { return std::tie(tenant, promised); }
};

// Warden to keeper: all workers of its predecessor that live are attached. `keeper`: as it is to
// call itself in Reattach, sent before the first of them.
struct Succeed {
  static constexpr uint32_t kKind = 206;
  uint64_t keeper = 0;
  bool all = false;
  auto Fields() { return std::tie(keeper, all); }
};

}  // namespace longwire::keeper
