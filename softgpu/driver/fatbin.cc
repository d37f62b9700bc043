#include "softgpu/driver/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "softgpu/engine/engine.h"
#include "wire/guards.h"

namespace softgpu {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kContainerMagic = 0xBA55ED50;
constexpr uint32_t kElfMagic = 0x464C457F;
constexpr size_t kContainerHeader = 16;  // bytes
constexpr size_t kEntryHeader = 64;      // bytes; more may follow
constexpr uint16_t kKindPtx = 1;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint32_t kArchitecture = DeviceShape::kComputeMajor * 10 + DeviceShape::kComputeMinor;
constexpr char kHint[] =
    "the image holds no PTX that this device can run: build with "
    "-gencode arch=compute_NN,code=compute_NN for an NN from 75 to 90";

template <class T>
T Read(const char* at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

struct Entry {
  const char* payload = nullptr;
  uint64_t stored = 0;        // bytes, padded
  uint32_t compressed = 0;    // bytes, 0 if the payload is plain
  uint64_t uncompressed = 0;  // bytes
  uint64_t flags = 0;
  uint32_t architecture = 0;
};

CUresult Unpack(const Entry& entry, std::string* ptx, std::string* reason) {
  bool lz4 = entry.flags & kFlagLz4, zstd = entry.flags & kFlagZstd;
  if (!lz4 && !zstd) {
    ptx->assign(entry.payload, entry.stored);
  } else {
    if (entry.compressed > entry.stored || entry.uncompressed > kMaxPtxBytes) {
      *reason = "a fat binary entry has impossible sizes";
      return CUDA_ERROR_INVALID_IMAGE;
    }
    ptx->resize(entry.uncompressed);
    bool good;
    if (zstd) {
      good = ZSTD_decompress(ptx->data(), ptx->size(), entry.payload, entry.compressed) ==
             entry.uncompressed;
    } else {
      good = LZ4_decompress_safe(entry.payload, ptx->data(), static_cast<int>(entry.compressed),
                                 static_cast<int>(ptx->size())) ==
             static_cast<int>(entry.uncompressed);
    }
    if (!good) {
      *reason = "a fat binary entry does not decompress";
      return CUDA_ERROR_INVALID_IMAGE;
    }
  }
  ptx->resize(strnlen(ptx->data(), ptx->size()));  // payloads end in padding
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ExtractFromContainer(const char* bytes, size_t size, std::string* ptx,
                              std::string* reason) {
  *reason = "the fat binary is damaged";
  if (size < kContainerHeader || Read<uint32_t>(bytes) != kContainerMagic) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  size_t header = Read<uint16_t>(bytes + 6);
  uint64_t body = Read<uint64_t>(bytes + 8);
  if (header < kContainerHeader || header > size || body > size - header) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Entry best;
  for (const char *at = bytes + header, *end = at + body; at < end;) {
    size_t left = static_cast<size_t>(end - at);
    if (left < kEntryHeader) break;
    uint64_t entry_header = Read<uint32_t>(at + 4), stored = Read<uint64_t>(at + 8);
    bool inside = longwire::wire::kPlantedBug || stored <= left - entry_header;
    if (entry_header < kEntryHeader || entry_header > left || !inside) {
      return CUDA_ERROR_INVALID_IMAGE;
    }
    Entry entry{at + entry_header,       stored,
                Read<uint32_t>(at + 16), Read<uint64_t>(at + 56),
                Read<uint64_t>(at + 40), Read<uint32_t>(at + 28)};
    if (Read<uint16_t>(at) == kKindPtx && entry.architecture <= kArchitecture &&
        (best.payload == nullptr || entry.architecture > best.architecture)) {
      best = entry;
    }
    at += entry_header + stored;
  }
  if (best.payload == nullptr) {
    *reason = kHint;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  return Unpack(best, ptx, reason);
}

CUresult ExtractPtx(const void* image, std::string* ptx, std::string* reason) {
  const char* bytes = static_cast<const char*>(image);
  // A PTX text may be shorter than a magic number.
  uint32_t magic = strnlen(bytes, 4) == 4 ? Read<uint32_t>(bytes) : 0;
  if (magic == kWrapperMagic) {
    bytes = Read<const char*>(bytes + 8);
    if (bytes == nullptr) return CUDA_ERROR_INVALID_IMAGE;
    magic = Read<uint32_t>(bytes);
  }
  if (magic == kContainerMagic) {
    uint64_t size = Read<uint16_t>(bytes + 6) + Read<uint64_t>(bytes + 8);
    if (size > kMaxContainerBytes) {
      *reason = "the fat binary is too large";
      return CUDA_ERROR_INVALID_IMAGE;
    }
    return ExtractFromContainer(bytes, size, ptx, reason);
  }
  if (magic == kElfMagic) {
    *reason = kHint;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  size_t length = strnlen(bytes, kMaxPtxBytes + 1);
  if (length > kMaxPtxBytes) {
    *reason = "the PTX text is too long";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  ptx->assign(bytes, length);
  return CUDA_SUCCESS;
}

}  // namespace softgpu
