// Tensor maps: checked as cuda.h says, and written as the engine reads them (engine/tensor_map.h),
// which copies by tiled ones.
#include "softgpu/engine/texture/tensor_map.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "softgpu/driver/state/driver.h"

namespace softgpu {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 32;
constexpr uint64_t kStrideLimit = uint64_t{1} << 40;

using Kind = TensorMap::Kind;

// Bits of an element.
unsigned ElementBits(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 64;
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      return 6;
    default:
      return 32;
  }
}

bool IsWide(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
         type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

bool IsFloat(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

// What all three forms have in common.
struct Tensor {
  Kind kind;
  CUtensorMapDataType type;
  uint32_t rank;
  void* address;
  const cuuint64_t* dimensions;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;

  uint64_t Alignment() const {
    return interleave == CU_TENSOR_MAP_INTERLEAVE_32B || IsWide(type) ? 32 : 16;
  }
};

bool KnowsEnums(const Tensor& t) {
  return t.type >= 0 && t.type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B && t.interleave >= 0 &&
         t.interleave <= CU_TENSOR_MAP_INTERLEAVE_32B && t.swizzle >= 0 &&
         t.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B && t.promotion >= 0 &&
         t.promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B && t.fill >= 0 &&
         t.fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
}

bool IsGood(const CUtensorMap* map, const Tensor& t) {
  if (map == nullptr || t.dimensions == nullptr || t.element_strides == nullptr) return false;
  if (!KnowsEnums(t) || t.rank == 0 || t.rank > kMaxDimensions) return false;
  const bool interleaved = t.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  if ((interleaved || t.kind != Kind::kTiled) && t.rank < 3) return false;
  if (t.rank > 1 && t.strides == nullptr) return false;
  if (t.interleave == CU_TENSOR_MAP_INTERLEAVE_32B && t.swizzle != CU_TENSOR_MAP_SWIZZLE_32B) {
    return false;
  }
  if (t.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !IsFloat(t.type)) return false;
  if (reinterpret_cast<uint64_t>(t.address) % t.Alignment() != 0) return false;
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (t.dimensions[i] == 0 || t.dimensions[i] > kMaxElements) return false;
    const bool ignored = i == 0 && !interleaved;
    if (!ignored && (t.element_strides[i] == 0 || t.element_strides[i] > 8)) return false;
    if (i + 1 < t.rank && (t.strides[i] % t.Alignment() != 0 || t.strides[i] >= kStrideLimit)) {
      return false;
    }
  }
  return true;
}

// How many bytes of the inner dimension fit a swizzle's span.
uint64_t Span(CUtensorMapSwizzle swizzle) {
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_NONE) return UINT64_MAX;
  if (swizzle == CU_TENSOR_MAP_SWIZZLE_32B) return 32;
  return swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64 : 128;
}

bool BoxFits(const Tensor& t, std::span<const cuuint32_t> box) {
  for (const cuuint32_t side : box) {
    if (side == 0 || side > (t.kind == Kind::kTiled ? 256 : 1024)) return false;
  }
  if (t.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return true;
  if (IsWide(t.type)) return box[0] == 128;
  const uint64_t inner = uint64_t{box[0]} * ElementBits(t.type) / 8;
  return inner % 16 == 0 && inner <= Span(t.swizzle);
}

// The swizzle's bits of a place's number, where the engine knows how it goes.
uint8_t SwizzleBits(CUtensorMapSwizzle swizzle) {
  return swizzle <= CU_TENSOR_MAP_SWIZZLE_128B ? static_cast<uint8_t>(swizzle) : 0;
}

bool KernelsCanCopy(const Tensor& t) {
  bool steps = std::any_of(t.element_strides + 1, t.element_strides + t.rank,
                           [](cuuint32_t stride) { return stride != 1; });
  return t.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && ElementBits(t.type) % 8 == 0 && !steps &&
         t.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B;
}

TensorMap Describe(const Tensor& t, std::span<const cuuint32_t> box) {
  TensorMap contents = {};
  contents.address = reinterpret_cast<uint64_t>(t.address);
  for (uint32_t i = 0; i < t.rank; ++i) {
    contents.dimensions[i] = static_cast<uint32_t>(t.dimensions[i] - 1);
    contents.element_strides[i] = static_cast<uint8_t>(t.element_strides[i]);
    if (i + 1 < t.rank) contents.strides[i] = t.strides[i];
  }
  std::copy(box.begin(), box.end(), contents.box);
  contents.kind = t.kind;
  contents.type = static_cast<uint8_t>(t.type);
  contents.rank = static_cast<uint8_t>(t.rank);
  contents.interleave = static_cast<uint8_t>(t.interleave);
  contents.swizzle = static_cast<uint8_t>(t.swizzle);
  contents.promotion = static_cast<uint8_t>(t.promotion);
  contents.fill = static_cast<uint8_t>(t.fill);
  contents.element_bits = static_cast<uint8_t>(ElementBits(t.type));
  contents.copies = KernelsCanCopy(t);
  contents.swizzle_bits = SwizzleBits(t.swizzle);
  return contents;
}

void Store(const TensorMap& contents, CUtensorMap* map) {
  *map = {};
  memcpy(map, &contents, sizeof contents);
}

}  // namespace
}  // namespace softgpu

using namespace softgpu;

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* dimensions,
                                const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  LONGWIRE_TRY(Enter());
  const Tensor tensor = {Kind::kTiled,    type,       rank,    address,   dimensions, strides,
                         element_strides, interleave, swizzle, promotion, fill};
  if (!IsGood(map, tensor) || box == nullptr || !BoxFits(tensor, {box, rank})) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Store(Describe(tensor, {box, rank}), map);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* dimensions,
                                 const cuuint64_t* strides, const int* lower, const int* upper,
                                 cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  LONGWIRE_TRY(Enter());
  const Tensor tensor = {Kind::kIm2col,   type,       rank,    address,   dimensions, strides,
                         element_strides, interleave, swizzle, promotion, fill};
  const cuuint32_t box[] = {channels, pixels};
  if (!IsGood(map, tensor) || lower == nullptr || upper == nullptr || channels > 256 ||
      !BoxFits(tensor, box)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // In one dimension 16 bits for a corner, in two 8, in three 5.
  constexpr int kCornerLimits[] = {1 << 15, 1 << 7, 1 << 4};
  const uint32_t sides = rank - 2;
  const int limit = kCornerLimits[sides - 1];
  const auto fits = [limit](int corner) { return corner >= -limit && corner < limit; };
  TensorMap contents = Describe(tensor, box);
  for (uint32_t i = 0; i < sides; ++i) {
    if (!fits(lower[i]) || !fits(upper[i])) return CUDA_ERROR_INVALID_VALUE;
    contents.corners[i] = static_cast<int16_t>(lower[i]);
    contents.corners[3 + i] = static_cast<int16_t>(upper[i]);
  }
  Store(contents, map);
  return CUDA_SUCCESS;
}

// cuda.h wants a device of 10.0 for it; a description that nothing reads is as good on this one.
CUresult cuTensorMapEncodeIm2colWide(
    CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* dimensions, const cuuint64_t* strides, int lower, int upper,
    cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
    CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  LONGWIRE_TRY(Enter());
  const Tensor tensor = {Kind::kIm2colWide, type,       rank,    address,   dimensions, strides,
                         element_strides,   interleave, swizzle, promotion, fill};
  const cuuint32_t box[] = {channels, pixels};
  if (!IsGood(map, tensor) || channels > 256 || !BoxFits(tensor, box) ||
      (mode != CU_TENSOR_MAP_IM2COL_WIDE_MODE_W && mode != CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128) ||
      std::min(lower, upper) < -(1 << 15) || std::max(lower, upper) >= 1 << 15) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  TensorMap contents = Describe(tensor, box);
  contents.corners[0] = static_cast<int16_t>(lower);
  contents.corners[3] = static_cast<int16_t>(upper);
  contents.mode = static_cast<uint8_t>(mode);
  Store(contents, map);
  return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  LONGWIRE_TRY(Enter());
  if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
  TensorMap contents;
  memcpy(&contents, map, sizeof contents);
  const bool wide = contents.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ||
                    IsWide(static_cast<CUtensorMapDataType>(contents.type));
  const bool known = contents.kind >= Kind::kTiled && contents.kind <= Kind::kIm2colWide;
  if (!known || reinterpret_cast<uint64_t>(address) % (wide ? 32 : 16) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  contents.address = reinterpret_cast<uint64_t>(address);
  Store(contents, map);
  return CUDA_SUCCESS;
}
