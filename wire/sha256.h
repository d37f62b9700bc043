// SHA-256 (FIPS 180-4), by which both ends name the same bytes. With the processor's own
// instructions where it has them (about 2 GB/s), else in plain code (about 0.3 GB/s).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace longwire::wire {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  // Which code does the work: kBest unless a test compares the two.
  enum class Code { kBest, kPlain };
  explicit Sha256(Code code = Code::kBest);

  void Add(std::span<const std::byte> bytes);
  // Of all bytes added. Nothing may be added afterwards.
  Digest Finish();

 private:
  void AddBlocks(const std::byte* blocks, size_t count);

  uint32_t state_[8];
  std::byte rest_[64];  // what does not fill a block yet
  uint64_t bytes_ = 0;
  const bool plain_;
};

Digest Sha256Of(std::span<const std::byte> bytes);
// 64 lower-case digits.
std::string Hexadecimal(const Digest& digest);
// False if it is not what Hexadecimal makes.
bool ParseHexadecimal(const std::string& text, Digest* digest);

}  // namespace longwire::wire
