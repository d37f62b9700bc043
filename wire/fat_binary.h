// Fat binaries, as nvcc puts a program's code for several architectures into one image: a container
// with entries, each a PTX text or a cubin, mostly compressed. Sizes in them are not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace longwire::wire {

inline constexpr uint32_t kFatContainerMagic = 0xba55ed50;
inline constexpr size_t kFatContainerHeader = 16;  // bytes, at least

struct FatEntry {
  enum Kind : uint16_t { kPtx = 1, kCubin = 2 };
  uint16_t kind = 0;           // others exist
  uint32_t architecture = 0;   // 90 for sm_90
  uint64_t flags = 0;          // how it is compressed
  std::span<const char> code;  // as stored, with padding behind it
  uint64_t packed_bytes = 0;   // compressed size; 0 if it is not compressed
  uint64_t plain_bytes = 0;    // size after decompression
};

// Calls `take` for each entry of the container in `bytes`. False if it is no container or is
// damaged, which may only be found after some entries.
bool ForEachFatEntry(std::span<const char> bytes, const std::function<void(const FatEntry&)>& take);

// Decompresses the entry's code, with its padding, if it has at most `most` bytes.
enum class Unpacked { kDone, kImpossibleSize, kDamaged };
Unpacked Unpack(const FatEntry& entry, size_t most, std::string* plain);

}  // namespace longwire::wire
