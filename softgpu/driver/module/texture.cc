#include "softgpu/driver/module/texture.h"

#include <algorithm>
#include <utility>

#include "softgpu/driver/memory/array.h"

namespace softgpu {
namespace {

CUresult SetChannels(CUarray_format format, unsigned channels, TextureView* view) {
  constexpr std::pair<CUarray_format, Channel> kChannels[] = {
      {CU_AD_FORMAT_UNSIGNED_INT8, Channel::kU8},   {CU_AD_FORMAT_UNSIGNED_INT16, Channel::kU16},
      {CU_AD_FORMAT_UNSIGNED_INT32, Channel::kU32}, {CU_AD_FORMAT_SIGNED_INT8, Channel::kS8},
      {CU_AD_FORMAT_SIGNED_INT16, Channel::kS16},   {CU_AD_FORMAT_SIGNED_INT32, Channel::kS32},
      {CU_AD_FORMAT_HALF, Channel::kF16},           {CU_AD_FORMAT_FLOAT, Channel::kF32}};
  for (auto [known, channel] : kChannels) {
    if (known != format) continue;
    view->channel = channel;
    view->channels = channels;
    return channels == 1 || channels == 2 || channels == 4 ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult AddLevel(const Array& array, TextureView* view) {
  view->levels.push_back({array.address, static_cast<uint32_t>(array.shape.Width),
                          static_cast<uint32_t>(array.rows), static_cast<uint32_t>(array.slices),
                          array.row_bytes, array.row_bytes * array.rows});
  view->memory = array.memory;
  return SetChannels(array.shape.Format, array.shape.NumChannels, view);
}

CUresult SetTexels(const CUDA_RESOURCE_DESC& resource, TextureView* view) {
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      auto array = FindArray(resource.res.array.hArray);
      return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : AddLevel(*array, view);
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      auto mipmap = Driver::Get().mipmaps.Find(resource.res.mipmap.hMipmappedArray);
      if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      for (auto& level : mipmap->levels) LONGWIRE_TRY(AddLevel(*level, view));
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      auto& linear = resource.res.linear;
      LONGWIRE_TRY(SetChannels(linear.format, linear.numChannels, view));
      size_t width = linear.sizeInBytes / view->texel_bytes();
      if (linear.devPtr == 0 || width == 0 || width > kMaxLinearTexels)
        return CUDA_ERROR_INVALID_VALUE;
      view->linear_memory = true;
      view->levels.push_back({linear.devPtr, static_cast<uint32_t>(width), 1, 1, 0, 0});
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      auto& plane = resource.res.pitch2D;
      LONGWIRE_TRY(SetChannels(plane.format, plane.numChannels, view));
      if (plane.devPtr == 0 || plane.width == 0 || plane.height == 0 ||
          plane.width > UINT16_MAX * 2 || plane.height > UINT16_MAX ||
          plane.pitchInBytes < plane.width * view->texel_bytes()) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      view->levels.push_back({plane.devPtr, static_cast<uint32_t>(plane.width),
                              static_cast<uint32_t>(plane.height), 1, plane.pitchInBytes, 0});
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult MakeView(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                  const CUDA_RESOURCE_VIEW_DESC* view_description,
                  std::shared_ptr<const TextureView>* made) {
  auto view = std::make_shared<TextureView>();
  LONGWIRE_TRY(SetTexels(resource, view.get()));
  if (view_description != nullptr) {
    const bool array = resource.resType == CU_RESOURCE_TYPE_ARRAY ||
                       resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (!array) return CUDA_ERROR_INVALID_VALUE;
    LONGWIRE_TRY(ApplyResourceView(*view_description, view.get()));
  }
  for (int i = 0; i < 3; ++i) {
    if (texture.addressMode[i] > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    view->addressing[i] = static_cast<Addressing>(texture.addressMode[i]);
  }
  if (texture.filterMode > CU_TR_FILTER_MODE_LINEAR ||
      texture.mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  view->linear = texture.filterMode == CU_TR_FILTER_MODE_LINEAR;
  view->normalized = (texture.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  view->as_integers = (texture.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  view->srgb = (texture.flags & CU_TRSF_SRGB) != 0;
  view->seamless = (texture.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  view->mip_linear = texture.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  view->bias = texture.mipmapLevelBias;
  view->least_level = texture.minMipmapLevelClamp;
  view->most_level = texture.maxMipmapLevelClamp;
  std::copy(std::begin(texture.borderColor), std::end(texture.borderColor), view->border.begin());
  *made = std::move(view);
  return CUDA_SUCCESS;
}

}  // namespace softgpu
