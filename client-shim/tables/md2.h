// MD2 (RFC 1319) and HMAC over it (RFC 2104), which the CUDA runtime's self-test of the driver
// uses. They protect nothing: MD2 is broken as a cryptographic hash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::shim {

class Md2 {
 public:
  static constexpr size_t kBlockBytes = 16;
  using Digest = std::array<uint8_t, 16>;

  void Update(std::span<const uint8_t> data);
  Digest Finish();

 private:
  void Block(const uint8_t* block);
  void Mix(const uint8_t* block);

  std::array<uint8_t, 48> state_{};
  std::array<uint8_t, kBlockBytes> checksum_{};
  std::array<uint8_t, kBlockBytes> pending_{};
  size_t pending_bytes_ = 0;
  uint8_t last_ = 0;  // last byte of the running checksum
};

// HMAC with a key of exactly one block.
Md2::Digest HmacMd2(const Md2::Digest& key, std::span<const uint8_t> message);

}  // namespace longwire::shim
