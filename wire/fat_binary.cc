#include "wire/fat_binary.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "wire/guards.h"

namespace longwire::wire {
namespace {

constexpr size_t kEntryHeader = 64;  // bytes; more may follow
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;

template <class T>
T Read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

bool ForEachFatEntry(std::span<const char> bytes,
                     const std::function<void(const FatEntry&)>& take) {
  if (bytes.size() < kFatContainerHeader || Read<uint32_t>(bytes.data()) != kFatContainerMagic) {
    return false;
  }
  size_t header = Read<uint16_t>(bytes.data() + 6);
  uint64_t body = Read<uint64_t>(bytes.data() + 8);
  if (header < kFatContainerHeader || header > bytes.size() || body > bytes.size() - header) {
    return false;
  }
  for (const char *at = bytes.data() + header, *end = at + body; at < end;) {
    size_t left = static_cast<size_t>(end - at);
    if (left < kEntryHeader) break;
    uint64_t entry_header = Read<uint32_t>(at + 4), stored = Read<uint64_t>(at + 8);
    bool inside = kPlantedBug || stored <= left - entry_header;
    if (entry_header < kEntryHeader || entry_header > left || !inside) return false;
    take({Read<uint16_t>(at),
          Read<uint32_t>(at + 28),
          Read<uint64_t>(at + 40),
          {at + entry_header, stored},
          Read<uint32_t>(at + 16),
          Read<uint64_t>(at + 56)});
    at += entry_header + stored;
  }
  return true;
}

Unpacked Unpack(const FatEntry& entry, size_t most, std::string* plain) {
  bool lz4 = entry.flags & kFlagLz4, zstd = entry.flags & kFlagZstd;
  if (!lz4 && !zstd) {
    if (entry.code.size() > most) return Unpacked::kImpossibleSize;
    plain->assign(entry.code.data(), entry.code.size());
    return Unpacked::kDone;
  }
  if (entry.packed_bytes > entry.code.size() || entry.plain_bytes > most) {
    return Unpacked::kImpossibleSize;
  }
  plain->resize(entry.plain_bytes);
  if (zstd) {
    size_t made =
        ZSTD_decompress(plain->data(), plain->size(), entry.code.data(), entry.packed_bytes);
    return made == entry.plain_bytes ? Unpacked::kDone : Unpacked::kDamaged;
  }
  int made =
      LZ4_decompress_safe(entry.code.data(), plain->data(), static_cast<int>(entry.packed_bytes),
                          static_cast<int>(plain->size()));
  return made == static_cast<int>(entry.plain_bytes) ? Unpacked::kDone : Unpacked::kDamaged;
}

}  // namespace longwire::wire
