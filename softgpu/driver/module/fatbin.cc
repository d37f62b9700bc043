#include "softgpu/driver/module/fatbin.h"

#include <cstring>
#include <optional>

#include "softgpu/engine/engine.h"
#include "wire/fat_binary.h"

namespace softgpu {
namespace {

using longwire::wire::FatEntry;
using longwire::wire::Unpacked;

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kElfMagic = 0x464C457F;
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

CUresult UnpackText(const FatEntry& entry, std::string* ptx, std::string* reason) {
  switch (Unpack(entry, kMaxPtxBytes, ptx)) {
    case Unpacked::kImpossibleSize:
      *reason = "a fat binary entry has impossible sizes";
      return CUDA_ERROR_INVALID_IMAGE;
    case Unpacked::kDamaged:
      *reason = "a fat binary entry does not decompress";
      return CUDA_ERROR_INVALID_IMAGE;
    case Unpacked::kDone:
      break;
  }
  ptx->resize(strnlen(ptx->data(), ptx->size()));  // payloads end in padding
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ExtractFromContainer(const char* bytes, size_t size, std::string* ptx,
                              std::string* reason) {
  std::optional<FatEntry> best;
  bool whole = longwire::wire::ForEachFatEntry({bytes, size}, [&](const FatEntry& entry) {
    if (entry.kind == FatEntry::kPtx && entry.architecture <= kArchitecture &&
        (!best || entry.architecture > best->architecture)) {
      best = entry;
    }
  });
  if (!whole) {
    *reason = "the fat binary is damaged";
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (!best) {
    *reason = kHint;
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  return UnpackText(*best, ptx, reason);
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
  if (magic == longwire::wire::kFatContainerMagic) {
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
