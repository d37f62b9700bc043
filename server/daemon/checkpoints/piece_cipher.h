// AES-256-GCM for the pieces of a checkpoint file. A piece's place in the file, and whether it is
// the last, are in its nonce; what came before it is authenticated with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::daemon {

using Digest = std::array<unsigned char, 32>;
using CheckpointKey = std::array<unsigned char, 32>;

inline constexpr size_t kTagBytes = 16;

class PieceCipher {
 public:
  // The file's key, made of the operator's and the file's salt, which never repeats.
  PieceCipher(const CheckpointKey& key, const Digest& salt);

  // The next piece: `bytes` is encrypted in place; the tag goes behind. False when the library
  // fails.
  bool Seal(std::span<const unsigned char> before, bool last, std::span<std::byte> bytes,
            std::span<std::byte> tag);
  // False if it is not what Seal made with `number` pieces before it. Threads may call it at once.
  bool Open(uint64_t number, std::span<const unsigned char> before, bool last,
            std::span<std::byte> bytes, std::span<std::byte> tag) const;

 private:
  Digest key_{};
  bool usable_ = false;
  uint64_t sealed_ = 0;  // pieces
};

}  // namespace longwire::daemon
