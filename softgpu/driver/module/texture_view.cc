// Resource views: an array's texels in another format of the same size, some of its levels or
// layers.
#include "softgpu/driver/module/texture.h"

namespace softgpu {
namespace {

// Layers lie in the places of slices.
CUresult TakeLayers(unsigned first, unsigned last, TextureView* view) {
  if (first == 0 && last == 0) return CUDA_SUCCESS;
  for (Texels& level : view->levels) {
    if (first > last || last >= level.depth) return CUDA_ERROR_INVALID_VALUE;
    level.address += first * level.slice_bytes;
    level.depth = last - first + 1;
  }
  return CUDA_SUCCESS;
}

CUresult TakeLevels(unsigned first, unsigned last, TextureView* view) {
  if (first > last || last >= view->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  auto begin = view->levels.begin();
  view->levels = {begin + first, begin + last + 1};
  return CUDA_SUCCESS;
}

CUresult TakeFormat(CUresourceViewFormat format, TextureView* view) {
  if (format == CU_RES_VIEW_FORMAT_NONE) return CUDA_SUCCESS;
  if (format < 0 || format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7) return CUDA_ERROR_INVALID_VALUE;
  if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return Refuse("a view of compressed blocks");
  // Three of each kind: with one, two and four channels.
  constexpr Channel kKinds[] = {Channel::kU8,  Channel::kS8,  Channel::kU16, Channel::kS16,
                                Channel::kU32, Channel::kS32, Channel::kF16, Channel::kF32};
  const uint32_t before = view->texel_bytes();
  view->channel = kKinds[(format - 1) / 3];
  view->channels = 1u << (format - 1) % 3;
  return view->texel_bytes() == before ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult ApplyResourceView(const CUDA_RESOURCE_VIEW_DESC& description, TextureView* view) {
  const Texels& first = view->levels.front();
  // The description has 0 for a dimension that the array lacks.
  const auto same = [](size_t described, uint32_t side) {
    return described == side || (described == 0 && side == 1);
  };
  if (description.width != first.width || !same(description.height, first.height) ||
      !same(description.depth, first.depth)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  LONGWIRE_TRY(TakeFormat(description.format, view));
  LONGWIRE_TRY(TakeLevels(description.firstMipmapLevel, description.lastMipmapLevel, view));
  return TakeLayers(description.firstLayer, description.lastLayer, view);
}

}  // namespace softgpu
