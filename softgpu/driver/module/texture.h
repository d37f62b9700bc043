// Textures and surfaces: from the driver's descriptions to what kernels read.
#pragma once

#include <memory>

#include "softgpu/driver/state/driver.h"
#include "softgpu/engine/texture/texture.h"

namespace softgpu {

constexpr size_t kMaxLinearTexels = size_t{1} << 28;  // of a texture of linear memory

// INVALID_VALUE for a description that no texture can have, INVALID_HANDLE for an array that is
// none.
CUresult MakeView(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                  const CUDA_RESOURCE_VIEW_DESC* view, std::shared_ptr<const TextureView>* made);

// The view as a description wants it. INVALID_VALUE for what the resource does not have.
CUresult ApplyResourceView(const CUDA_RESOURCE_VIEW_DESC& description, TextureView* view);

}  // namespace softgpu
