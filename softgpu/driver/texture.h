// Texture and surface objects and references: from the driver's descriptions to what kernels read.
#pragma once

#include <memory>
#include <mutex>

#include "softgpu/driver/driver.h"
#include "softgpu/engine/engine.h"
#include "softgpu/engine/texture.h"

namespace softgpu {

constexpr size_t kMaxLinearTexels = size_t{1} << 28;  // of a texture of linear memory

// A reference of a module, or one that a program made by itself. What it stands for is taken at
// each launch.
struct TextureReference {
  bool surface = false;
  Module* module = nullptr;  // null of one that a program made

  std::mutex mutex;  // guards what follows; a leaf
  bool bound = false;
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  CUarray_format format = CU_AD_FORMAT_FLOAT;  // of linear memory bound later
  unsigned channels = 1;
  std::shared_ptr<const TextureView> view;  // null: to be made anew
};

// INVALID_VALUE for a description that no texture can have, INVALID_HANDLE for an array that is
// none.
CUresult MakeView(const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& texture,
                  const CUDA_RESOURCE_VIEW_DESC* view, std::shared_ptr<const TextureView>* made);

// The view as a description wants it. INVALID_VALUE for what the resource does not have.
CUresult ApplyResourceView(const CUDA_RESOURCE_VIEW_DESC& description, TextureView* view);

// Sets what the module's references stand for now.
void BindReferences(const Module& module, LaunchConfig* config);

}  // namespace softgpu
