// What writer and reader of a checkpoint file (checkpoint_file.h) know of its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "server/daemon/checkpoints/piece_cipher.h"
#include "server/protocol/moving.h"

namespace longwire::daemon {

inline constexpr std::string_view kCheckpointMagic = "longwire checkpoint\n";
inline constexpr uint32_t kCheckpointFormat = 1;
inline constexpr uint32_t kCheckpointPiece = uint32_t{1} << 20;  // bytes of content, at most

// The head as it stands in the file, behind the magic and its own length.
struct PackedHead {
  static constexpr uint32_t kKind = 441;
  uint32_t format = kCheckpointFormat;
  uint32_t snapshot = moving::kVersion;
  bool sealed = false;
  std::string salt;
  std::string writer;
  auto Fields() { return std::tie(format, snapshot, sealed, salt, writer); }
};

// chain = SHA-256(chain, bytes). False where the library fails.
bool Chain(std::span<const std::byte> bytes, Digest* chain);

}  // namespace longwire::daemon
